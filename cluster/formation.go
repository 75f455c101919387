package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"holdfast.internal/cluster/peer"
)

const (
	// formEvery is how often a node without a cluster asks the others.
	formEvery = 250 * time.Millisecond

	// formTimeout is how long one of them may take over the answer.
	formTimeout = time.Second

	// formGrace is how long a cluster may take to form before what it waits for becomes
	// a warning: nodes that are started together do not come up at once.
	formGrace = 5 * time.Second

	// formRemind is how often it is logged what a node waits for.
	formRemind = time.Minute
)

// formation turns blank nodes into a cluster, once. A cluster forms only when
// every member is reachable, blank, and has promised: written down, the id that
// the node of the lowest name minted and the raft ids of all. So nodes that lost
// their data cannot form an empty one while another still has it, whatever their
// command lines say.
//
//	blank ──promise──► promised ──bootstrap──► member
//
// A promise is for good: a node leaves it only as a member of that very cluster,
// when it has seen that all others have promised, or that one is a member. Each
// step is on disk before anybody hears of it, so a node may stop at any time and
// goes on where it was.
type formation struct {
	self      peer.Target
	others    []peer.Target // by name
	call      func(ctx context.Context, to peer.Target, method byte, request []byte) ([]byte, error)
	write     func(identity) error
	bootstrap func([]raft.Server) error
	log       *slog.Logger

	mu       sync.Mutex
	identity identity
	obstacle string // what the node waits for
	broken   error  // a promise could not be written down
	// strangers are the names of nodes that asked to be of the cluster and are no members.
	strangers []string

	formed chan struct{} // closed when the node is a member
}

// stage is how far a node is in the formation of its cluster.
type stage string

const (
	blank    stage = "blank"
	promised stage = "promised"
	member   stage = "member"
)

// standing is what a node tells others of its formation.
type standing struct {
	Stage     stage     `json:"stage"`
	Name      string    `json:"name"`
	RaftID    string    `json:"raft_id"`
	ClusterID string    `json:"cluster_id,omitempty"`
	Members   []string  `json:"members"` // as it was told: NAME=HOST:PORT, by name
	Founders  []founder `json:"founders,omitempty"`
}

// formationRequest asks a node for its standing, after it has made the promise if
// there is one to make.
type formationRequest struct {
	From    standing `json:"from"`
	Promise *promise `json:"promise,omitempty"`
}

// promise is to be of a cluster with these founders, and of no other.
type promise struct {
	ClusterID string    `json:"cluster_id"`
	Founders  []founder `json:"founders"` // by name
}

// stage is how far a node with this identity is.
func (id identity) stage() stage {
	switch {
	case id.ClusterID == "":
		return blank
	case id.Forming:
		return promised
	}
	return member
}

// resume continues the formation of a node where it stopped. bootstrapped tells
// that the node's log or snapshot names its members.
func (f *formation) resume(bootstrapped bool) error {
	f.formed, f.obstacle = make(chan struct{}), "looking for the other nodes"
	switch stage := f.identity.stage(); {
	case stage == member && !bootstrapped:
		return fmt.Errorf("%w: %s says that the node is a member, but log and snapshots are gone", ErrIdentity, identityFile)
	case stage == blank && bootstrapped:
		return fmt.Errorf("%w: there is data, but %s names no cluster", ErrIdentity, identityFile)
	case stage == promised && bootstrapped:
		return f.settle()
	case stage == member:
		close(f.formed)
	}
	return nil
}

// clusterID is that of the node's cluster; empty until the node is a member.
func (f *formation) clusterID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.identity.stage() != member {
		return ""
	}
	return f.identity.ClusterID
}

// waitsFor is why the node is not a member yet; empty if it is.
func (f *formation) waitsFor() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.identity.stage() == member {
		return ""
	}
	return "no cluster yet: " + f.obstacle
}

// run asks the others until the node is a member or ctx is done.
func (f *formation) run(ctx context.Context) error {
	ticker := time.NewTicker(formEvery)
	defer ticker.Stop()
	reminder := time.NewTicker(formRemind)
	defer reminder.Stop()
	late, level := time.After(formGrace), slog.LevelInfo
	said := ""
	for f.clusterID() == "" {
		obstacle, err := f.advance(ctx)
		if err = cmp.Or(err, f.broke()); err != nil {
			return fmt.Errorf("form cluster: %w", err)
		}
		f.setObstacle(obstacle)
		if obstacle != "" && obstacle != said && ctx.Err() == nil {
			f.log.Log(ctx, level, "waiting for the cluster to form", "obstacle", obstacle)
			said = obstacle
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.formed:
		case <-ticker.C:
		case <-late:
			level, said = slog.LevelWarn, ""
		case <-reminder.C:
			said = ""
		}
	}
	return nil
}

func (f *formation) broke() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken
}

func (f *formation) setObstacle(obstacle string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.obstacle = obstacle
}

// advance asks all others and takes the step that their answers allow. Otherwise
// it tells what stands in the way.
func (f *formation) advance(ctx context.Context) (obstacle string, err error) {
	answers, obstacle := f.askAll(ctx, nil)
	mine := f.standing()
	if mine.Stage == blank {
		if obstacle == "" {
			obstacle, err = f.propose(mine, answers)
		}
		if mine = f.standing(); err != nil || mine.Stage == blank {
			return obstacle, err
		}
	}
	if !mine.isFounded(answers, len(f.others)) {
		answers, obstacle = f.askAll(ctx, &promise{mine.ClusterID, mine.Founders})
	}
	if mine.isFounded(answers, len(f.others)) {
		return "", f.join()
	}
	if obstacle == "" {
		obstacle = "not all nodes have promised to be of it"
	}
	return obstacle, nil
}

// isFounded reports whether all others have made the promise of this node as well,
// or one already knows that they have.
func (s standing) isFounded(answers []standing, others int) bool {
	same := 0
	for _, a := range answers {
		if a.ClusterID != s.ClusterID {
			continue
		}
		if a.Stage == member {
			return true
		}
		same++
	}
	return same == others
}

// askAll asks all others at once, and has them make a promise if there is one. It
// returns the answers, and what stands in the way of a cluster by them.
func (f *formation) askAll(ctx context.Context, p *promise) ([]standing, string) {
	mine := f.standing()
	request, err := json.Marshal(formationRequest{mine, p})
	if err != nil {
		panic("cluster: encode standing: " + err.Error()) // strings alone
	}
	ctx, cancel := context.WithTimeout(ctx, formTimeout)
	defer cancel()
	answers, obstacles := make([]standing, len(f.others)), make([]string, len(f.others))
	var asked sync.WaitGroup
	for i, to := range f.others {
		asked.Go(func() { answers[i], obstacles[i] = f.ask(ctx, to, request, mine) })
	}
	asked.Wait()
	answers = slices.DeleteFunc(answers, func(a standing) bool { return a.Name == "" })
	obstacles = slices.DeleteFunc(obstacles, func(o string) bool { return o == "" })
	switch {
	case !slices.ContainsFunc(answers, mine.isLeftOut):
	case slices.ContainsFunc(answers, func(a standing) bool { return mine.isLeftOut(a) && a.names(mine.Name) }):
		obstacles = append(obstacles, leftOutAdvice)
	default:
		obstacles = append(obstacles, noMemberAdvice)
	}
	return answers, strings.Join(obstacles, "; ")
}

// ask asks one other node. The standing is empty if it did not answer.
func (f *formation) ask(ctx context.Context, to peer.Target, request []byte, mine standing) (a standing, obstacle string) {
	answer, err := f.call(ctx, to, peer.MethodFormation, request)
	if err == nil {
		err = json.Unmarshal(answer, &a)
	}
	if err != nil {
		f.log.Debug("member does not answer", "member", to, "err", err)
		obstacle = fmt.Sprintf("%s is not reachable", to)
		if reason := peer.Reason(err); reason != "" {
			obstacle += ": " + reason
		}
		return standing{}, obstacle
	}
	return a, mine.obstacle(a)
}

// obstacle is why a node cannot form a cluster with one that answered so; empty if
// it can.
func (s standing) obstacle(a standing) string {
	switch {
	case s.isLeftOut(a) && !a.names(s.Name):
		return fmt.Sprintf("%s is of cluster %s, which has no member %s", a.Name, a.ClusterID, s.Name)
	case s.isLeftOut(a):
		return fmt.Sprintf("%s has the data of cluster %s", a.Name, a.ClusterID)
	case a.Stage == member:
		return ""
	case !slices.Equal(a.Members, s.Members):
		return fmt.Sprintf("%s was started with --cluster %s", a.Name, strings.Join(a.Members, ","))
	case a.Stage == promised && s.ClusterID != a.ClusterID:
		if s.Stage == blank && isFounder(a.Founders, s.Name, s.RaftID) {
			return "" // its promise is on the way
		}
		return fmt.Sprintf("%s is about to form cluster %s without this data folder; remove the data folders of all nodes and start again",
			a.Name, a.ClusterID)
	case s.Stage == promised && a.Stage == blank && !isFounder(s.Founders, a.Name, a.RaftID):
		return fmt.Sprintf("%s has lost its data folder while the cluster formed; remove the data folders of all nodes and start again", a.Name)
	}
	return ""
}

// isLeftOut reports whether the other node is a member of a cluster that this one is
// not of.
func (s standing) isLeftOut(a standing) bool { return a.Stage == member && a.ClusterID != s.ClusterID }

// leftOutAdvice is what the operator of such a node must know.
const leftOutAdvice = "this node has none of it: it cannot be taken back yet; if its data folder was only moved or not mounted, " +
	"stop the node and bring that very folder back, never a copy"

// noMemberAdvice is what the operator of a node must know whose name the cluster does not
// have.
const noMemberAdvice = "the members of a cluster are fixed, and this node is none of them: check its --node and --cluster"

// names reports whether a node was told of a member of that name.
func (s standing) names(name string) bool {
	_, ok := s.memberNamed(name)
	return ok
}

// memberNamed is the member of that name as the node was told of it, NAME=HOST:PORT;
// only the name, and false, if it was told of none.
func (s standing) memberNamed(name string) (text string, ok bool) {
	for _, m := range s.Members {
		if strings.HasPrefix(m, name+"=") {
			return m, true
		}
	}
	return name, false
}

func isFounder(founders []founder, name, raftID string) bool {
	return slices.ContainsFunc(founders, func(f founder) bool { return f.Name == name && f.RaftID == raftID })
}

// propose has the node of the lowest name mint a cluster id, and promise first,
// when all others are blank. A node that is not the lowest waits to be asked.
// It returns what stands in the way.
func (f *formation) propose(mine standing, answers []standing) (obstacle string, err error) {
	for _, a := range answers {
		if a.Name < mine.Name || a.Stage != blank {
			return fmt.Sprintf("%s has yet to propose one", a.Name), nil
		}
	}
	p := promise{ClusterID: uuid.NewString()}
	for _, s := range append(answers, mine) {
		text, _ := mine.memberNamed(s.Name)
		target, err := peer.ParseTarget(text)
		if err != nil {
			return "", err
		}
		p.Founders = append(p.Founders, founder{Name: s.Name, Address: target.Address, RaftID: s.RaftID})
	}
	slices.SortFunc(p.Founders, func(a, b founder) int { return strings.Compare(a.Name, b.Name) })
	return "", f.promise(p)
}

// promise writes down that the node will be of that cluster and of no other. It
// does nothing if the node has promised before.
func (f *formation) promise(p promise) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil || f.identity.stage() != blank {
		return f.broken
	}
	id := f.identity
	id.ClusterID, id.Founders, id.Forming = p.ClusterID, p.Founders, true
	if err := f.write(id); err != nil {
		f.broken = err
		return err
	}
	f.identity = id
	return nil
}

// join makes the node a member of the cluster that it has promised to join.
func (f *formation) join() error {
	f.mu.Lock()
	founders := f.identity.Founders
	f.mu.Unlock()
	servers := make([]raft.Server, len(founders))
	for i, founder := range founders {
		servers[i].ID = raft.ServerID(founder.RaftID)
		servers[i].Address = peer.Target{Name: founder.Name, Address: founder.Address}.RaftAddress()
	}
	if err := f.bootstrap(servers); err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return err
	}
	return f.settle()
}

// settle writes down that the node is a member.
func (f *formation) settle() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.identity
	id.Forming = false
	if err := f.write(id); err != nil {
		return err
	}
	f.identity = id
	f.log.Info("cluster formed", "cluster_id", id.ClusterID, "raft_id", id.RaftID)
	close(f.formed)
	return nil
}

// standing is where the node stands.
func (f *formation) standing() standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := standing{
		Stage: f.identity.stage(), Name: f.identity.Name, RaftID: f.identity.RaftID,
		ClusterID: f.identity.ClusterID, Founders: f.identity.Founders,
	}
	for _, t := range append([]peer.Target{f.self}, f.others...) {
		s.Members = append(s.Members, t.String())
	}
	slices.Sort(s.Members)
	return s
}

// answer is the peer.Handler of formation: it makes the promise that the request
// asks for, if this node may, and tells where the node stands.
func (f *formation) answer(_ context.Context, _ string, request []byte) []byte {
	var r formationRequest
	if err := json.Unmarshal(request, &r); err != nil {
		f.log.Warn("formation request not understood", "err", err)
		return nil
	}
	mine := f.standing()
	f.noteStranger(mine, r.From.Name)
	if r.Promise != nil && mine.mayPromise(r) {
		if err := f.promise(*r.Promise); err != nil {
			f.log.Error("promise not written down", "err", err)
		}
		mine = f.standing()
	}
	answer, err := json.Marshal(mine)
	if err != nil {
		panic("cluster: encode standing: " + err.Error()) // strings alone
	}
	return answer
}

// maxStrangersNoted bounds the names that are remembered, since anybody may make them up
// where there are no certificates.
const maxStrangersNoted = 16

// noteStranger warns, once, of a node that wants to be of this node's cluster and is no
// member of it.
func (f *formation) noteStranger(mine standing, name string) {
	if mine.Stage != member || mine.names(name) {
		return
	}
	f.mu.Lock()
	known := slices.Contains(f.strangers, name) || len(f.strangers) == maxStrangersNoted
	if !known {
		f.strangers = append(f.strangers, name)
	}
	f.mu.Unlock()
	if !known {
		f.log.Warn("a node that is no member asks to be of the cluster", "from", name, "cluster_id", mine.ClusterID)
	}
}

// mayPromise reports whether a blank node may promise what it is asked to: its own
// members, with its own data folder among the founders.
func (s standing) mayPromise(r formationRequest) bool {
	if s.Stage != blank || r.Promise.ClusterID == "" || !isFounder(r.Promise.Founders, s.Name, s.RaftID) {
		return false
	}
	members := make([]string, 0, len(r.Promise.Founders))
	for _, f := range r.Promise.Founders {
		members = append(members, peer.Target{Name: f.Name, Address: f.Address}.String())
	}
	slices.Sort(members)
	return slices.Equal(members, s.Members)
}
