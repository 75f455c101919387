package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/pprof"
	"strings"

	"holdfast.internal/cluster"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// maxSettingSize bounds the body of PUT /settings/{name}.
const maxSettingSize = 64 << 10

// Node is what the admin port needs of a *cluster.Node.
type Node interface {
	Ready() (ready bool, reasons []string)
	Status() cluster.Status
	Metrics() cluster.Metrics
	Queues() []sqs.QueueCensus
	Queue(key sqs.QueueKey) (sqs.QueueDescription, bool)
	Topics() []sns.TopicCensus
	Topic(key sns.TopicKey, after sns.SubscriptionPlace, limit int) (sns.TopicCensus, sns.ListSubscriptionsResult, bool)
	RotateSigningKey(ctx context.Context) (certificate string, err error)
	Peek(ctx context.Context, queue sqs.QueueKey, state sqs.MessageState, after uint64, limit int) (cluster.PeekPage, error)
	Tail(queue sqs.QueueKey) (*cluster.Tail, error)
	Trace(ctx context.Context, id sqs.MessageID) (raftfsm.Trace, error)
	Settings() raftfsm.Settings
	FullDigest() raftfsm.IndexedDigest
	Now() sqs.Time
	Do(ctx context.Context, c raftfsm.Command, bodies ...[]byte) (raftfsm.Outcome, error)
}

var _ Node = (*cluster.Node)(nil)

// Config is what New needs; all of it.
type Config struct {
	Node    Node
	Metrics *Metrics // the API port observes with it already
	// Certificates tells the certificates in force; nil if there are none.
	Certificates func() []Certificate
	Logger       *slog.Logger
	// MetricsQueues is how many queues, and how many topics, have series of their own
	// in /metrics.
	MetricsQueues int
}

type server struct {
	Config
}

// New makes the handler of the admin port.
func New(config Config) http.Handler {
	if config.Certificates == nil {
		config.Certificates = func() []Certificate { return nil }
	}
	s := &server{config}
	config.Metrics.registry.MustRegister(&collector{config.Node, config.MetricsQueues}, &certificateCollector{config.Certificates})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.getStatus)
	mux.HandleFunc("GET /digest", s.getDigest)
	mux.HandleFunc("GET /members", s.getMembers)
	mux.HandleFunc("GET /queues", s.whenReady(s.getQueues))
	mux.HandleFunc("GET /queues/{account}/{name}", s.whenReady(s.getQueue))
	mux.HandleFunc("GET /queues/{account}/{name}/messages", s.whenReady(s.getMessages))
	mux.HandleFunc("DELETE /queues/{account}/{name}/messages", s.deleteMessages)
	mux.HandleFunc("GET /queues/{account}/{name}/redrive", s.getRedrive)
	mux.HandleFunc("POST /queues/{account}/{name}/redrive", s.wantJSON(s.postRedrive))
	mux.HandleFunc("DELETE /queues/{account}/{name}/redrive", s.deleteRedrive)
	mux.HandleFunc("GET /queues/{account}/{name}/tail", s.whenReady(s.getTail))
	mux.HandleFunc("GET /messages/{id}/trace", s.whenReady(s.getTrace))
	mux.HandleFunc("GET /topics", s.whenReady(s.getTopics))
	mux.HandleFunc("GET /topics/{account}/{name}/subscriptions", s.whenReady(s.getSubscriptions))
	mux.HandleFunc("POST /signing-keys", s.wantJSON(s.postSigningKey))
	mux.HandleFunc("GET /settings", s.whenReady(s.getSettings))
	mux.HandleFunc("PUT /settings/{name}", s.putSetting)
	mux.Handle("GET /metrics", config.Metrics.handler())
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return s.orRefuse(mux)
}

// orRefuse serves what mux has, and says as all refusals of this port do what it has not.
func (s *server) orRefuse(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		nowhere, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		nowhere.ServeHTTP(&mutedWriter{w}, r)
		if allowed := w.Header().Get("Allow"); allowed != "" {
			s.refuse(w, http.StatusMethodNotAllowed, "this takes "+allowed)
			return
		}
		s.refuse(w, http.StatusNotFound, "there is nothing here")
	}
}

// mutedWriter takes the header of an answer only.
type mutedWriter struct{ http.ResponseWriter }

func (w *mutedWriter) WriteHeader(int) {}

func (w *mutedWriter) Write(b []byte) (int, error) { return len(b), nil }

// whenReady guards what looks into the state: that of a node which is not ready may be
// an old one, and ?stale=true asks for it all the same. Before the node is in a cluster,
// or has read its log, it knows nothing, which is not the same as that there is nothing.
func (s *server) whenReady(look http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ready, reasons := s.Node.Ready()
		var obstacle string
		switch {
		case !ready && r.FormValue("stale") != "true":
			obstacle = "this node is not ready"
		case s.Node.Settings().ClusterID == "":
			obstacle = "this node knows nothing yet"
		default:
			look(w, r)
			return
		}
		if len(reasons) > 0 {
			obstacle += ": " + strings.Join(reasons, "; ")
		}
		s.refuse(w, http.StatusServiceUnavailable, obstacle)
	}
}

// wantJSON guards a POST: a page in a browser can send one to loopback without being
// asked, but none of this content type.
func (s *server) wantJSON(post http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			s.refuse(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
			return
		}
		post(w, r)
	}
}

func (s *server) getStatus(w http.ResponseWriter, _ *http.Request) {
	status := newStatus(s.Node.Status())
	status.Certificates = append(status.Certificates, s.Certificates()...)
	s.answer(w, status)
}

// getDigest answers with the full digest of the state as of now: equal on all nodes
// that have applied the same entries. It walks over all queues.
func (s *server) getDigest(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, newDigest(s.Node.FullDigest()))
}

func (s *server) getMembers(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, newStatus(s.Node.Status()).Members)
}

func (s *server) getSettings(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, settingValues(s.Node.Settings()))
}

// putSetting changes a setting on all nodes and answers with all settings as
// they are then.
func (s *server) putSetting(w http.ResponseWriter, r *http.Request) {
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSettingSize))
	if err != nil {
		s.refuse(w, http.StatusBadRequest, "the value is missing or too long")
		return
	}
	name := r.PathValue("name")
	outcome, err := s.Node.Do(r.Context(), raftfsm.SetSetting{Name: name, Value: string(value)})
	if err != nil {
		s.refuseCondition(w, err)
		return
	}
	if outcome.Err != nil {
		s.refuse(w, http.StatusBadRequest, outcome.Err.Error())
		return
	}
	s.Logger.Info("setting changed", "name", name, "value", string(value), "index", outcome.Index)
	settings := s.Node.Settings()
	_ = settings.Set(name, string(value)) // as the state has; a follower hears of it a little later
	s.answer(w, settingValues(settings))
}

func settingValues(settings raftfsm.Settings) map[string]string {
	values := map[string]string{}
	for _, setting := range settings.List() {
		values[setting.Name] = setting.Value
	}
	return values
}

// refuseCondition says, as the API does, whether the change may yet happen.
func (s *server) refuseCondition(w http.ResponseWriter, err error) {
	outcome := "not-applied"
	if !errors.Is(err, cluster.ErrNoLeader) && !errors.Is(err, cluster.ErrOverloaded) {
		outcome = "unknown"
	}
	w.Header().Set("x-holdfast-outcome", outcome)
	s.refuse(w, http.StatusServiceUnavailable, err.Error())
}

func (s *server) refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	s.write(w, map[string]string{"error": text})
}

func (s *server) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	s.write(w, v)
}

func (s *server) write(w io.Writer, v any) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		s.Logger.Debug("admin client left", "err", err)
	}
}
