package admin

import (
	"net/http"
	"strings"

	"holdfast.internal/sqs"
)

// Queue is an element of GET /queues. Counters run since the queue was made.
type Queue struct {
	Account       string `json:"account"`
	Name          string `json:"name"`
	Incarnation   uint64 `json:"incarnation"`
	Visible       int    `json:"visible"`
	InFlight      int    `json:"in_flight"`
	Delayed       int    `json:"delayed"`
	OldestMS      int64  `json:"oldest_ms"` // age of the oldest message; 0 without one
	Sent          uint64 `json:"sent"`
	SentBytes     uint64 `json:"sent_bytes"`
	Received      uint64 `json:"received"`
	Deleted       uint64 `json:"deleted"`
	EmptyReceives uint64 `json:"empty_receives"` // of this node, since it began
	Moved         uint64 `json:"moved"`          // from here to the dead-letter queue
	Stranded      uint64 `json:"stranded"`       // deliveries for want of a dead-letter queue
	Lost          uint64 `json:"lost"`           // messages whose content is damaged on every node
	Damaged       bool   `json:"damaged"`
	// DeadLetterQueue is ACCOUNT/NAME of the queue that the RedrivePolicy names;
	// empty without one. Dangling says that it does not exist.
	DeadLetterQueue string `json:"dead_letter_queue"`
	Dangling        bool   `json:"dangling"`
}

// QueueDetails is the answer of GET /queues/{account}/{name}.
type QueueDetails struct {
	Queue
	Attributes map[string]string `json:"attributes"` // the settable ones that have a value
	Tags       map[string]string `json:"tags"`
	CreatedMS  int64             `json:"created_ms"` // since the Unix epoch, as are all below
	ModifiedMS int64             `json:"modified_ms"`
	PurgedMS   int64             `json:"purged_ms"` // 0: never
	Sources    []string          `json:"sources"`   // ACCOUNT/NAME of the queues that name this one in their RedrivePolicy
}

// getQueues answers with all queues, or with those of ?account= and ?prefix=.
func (s *server) getQueues(w http.ResponseWriter, r *http.Request) {
	metrics := s.Node.Metrics()
	account, prefix := r.FormValue("account"), r.FormValue("prefix")
	queues := []Queue{}
	for _, q := range readQueues(s.Node, &metrics) {
		if (account == "" || q.Queue.Account == account) && strings.HasPrefix(q.Queue.Name, prefix) {
			queues = append(queues, newQueue(q))
		}
	}
	s.answer(w, queues)
}

// pathKey is the queue that the path names.
func pathKey(r *http.Request) sqs.QueueKey {
	return sqs.QueueKey{Account: r.PathValue("account"), Name: r.PathValue("name")}
}

const noSuchQueue = "there is no such queue"

func (s *server) getQueue(w http.ResponseWriter, r *http.Request) {
	d, ok := s.Node.Queue(pathKey(r))
	if !ok {
		s.refuse(w, http.StatusNotFound, noSuchQueue)
		return
	}
	metrics := s.Node.Metrics()
	details := QueueDetails{
		Queue:      newQueue(newReading(d.QueueCensus, &metrics, s.Node.Now())),
		Attributes: map[string]string{},
		Tags:       map[string]string{},
		CreatedMS:  int64(d.CreatedAt),
		ModifiedMS: int64(d.ModifiedAt),
		PurgedMS:   int64(d.PurgedAt),
		Sources:    each(d.Sources, keyText),
	}
	for _, a := range d.Attributes {
		details.Attributes[string(a.Name)] = a.Value
	}
	for _, t := range d.Tags {
		details.Tags[t.Key] = t.Value
	}
	s.answer(w, details)
}

// deleteMessages is PurgeQueue, in the log as any other.
func (s *server) deleteMessages(w http.ResponseWriter, r *http.Request) {
	key := pathKey(r)
	if _, index, ok := s.do(w, r, sqs.PurgeQueue{Queue: key}); ok {
		s.Logger.Info("queue purged", "account", key.Account, "queue", key.Name, "index", index)
		s.answer(w, map[string]uint64{"index": index})
	}
}

func newQueue(q queueReading) Queue {
	return Queue{
		Account:         q.Queue.Account,
		Name:            q.Queue.Name,
		Incarnation:     q.Incarnation,
		Visible:         q.Visible,
		InFlight:        q.InFlight,
		Delayed:         q.Delayed,
		OldestMS:        q.age.Milliseconds(),
		Sent:            q.Sent,
		SentBytes:       q.SentBytes,
		Received:        q.Received,
		Deleted:         q.Deleted,
		EmptyReceives:   q.emptyReceives,
		Moved:           q.Moved,
		Stranded:        q.Stranded,
		Lost:            q.Lost,
		Damaged:         q.Damaged,
		DeadLetterQueue: keyText(q.DeadLetterTarget),
		Dangling:        q.Dangling,
	}
}

// keyText is ACCOUNT/NAME; empty for no queue.
func keyText(k sqs.QueueKey) string {
	if k == (sqs.QueueKey{}) {
		return ""
	}
	return k.Account + "/" + k.Name
}
