package cluster

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// snapshotStall is how long the sender of a snapshot may send nothing. Raft reads
// a snapshot in the goroutine that also votes and appends, without a deadline: a
// sender that is paused would take this node out of the cluster.
const snapshotStall = 5 * time.Second

// guard is a transport that looks at each snapshot before raft installs it. Raft
// v1.8.0 installs whatever comes: a snapshot older than the state, which would go
// back, and one over a log that goes on behind it in another way, after which raft
// refuses every entry (hashicorp/raft issue 697).
//
// For a snapshot of index S and term T:
//
//   - S is applied here, or the log has S with the term T: it is answered as if
//     installed, for what it holds is here already.
//   - The log reaches S, with another term: the log from S on is dropped and raft
//     opened anew. The leader sends the snapshot again, and raft takes it.
//   - Else it goes to raft.
type guard struct {
	raft.Transport
	raft.WithPreVote
	guardConfig

	out     chan raft.RPC
	stop    chan struct{}
	stopped sync.Once
	ended   chan struct{}
}

// guardedTransport is what a guard can be put around. Without WithPreVote raft
// would hold elections without asking first.
type guardedTransport interface {
	raft.Transport
	raft.WithPreVote
}

// guardConfig is what a guard needs of its node.
type guardConfig struct {
	log       raft.LogStore
	snapshots raft.SnapshotStore
	// applied is the index of the newest entry that the machine has.
	applied func() uint64
	// last is what raft takes for its last index.
	last func() uint64
	// reopen ends raft, calls repair and starts raft on the same stores, with
	// another guard.
	reopen func(repair func() error) error
	// breakLinks closes the connections to a node.
	breakLinks func(raft.ServerAddress)
	// installed hears how the installation of a snapshot ended; nil: well.
	installed func(error)
	// fatal is called when reopen failed.
	fatal  func(error)
	logger *slog.Logger
}

// newGuard puts a guard around a transport, which it closes in the end. Raft calls
// Close.
func newGuard(inner guardedTransport, c guardConfig) *guard {
	g := &guard{
		Transport: inner, WithPreVote: inner, guardConfig: c,
		out: make(chan raft.RPC), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go g.run()
	return g
}

// Consumer implements raft.Transport.
func (g *guard) Consumer() <-chan raft.RPC { return g.out }

// Close implements raft.WithClose.
func (g *guard) Close() error {
	g.stopped.Do(func() { close(g.stop) })
	<-g.ended
	if inner, ok := g.Transport.(raft.WithClose); ok {
		return inner.Close()
	}
	return nil
}

func (g *guard) run() {
	defer close(g.ended)
	for {
		select {
		case rpc := <-g.Transport.Consumer():
			if request, ok := rpc.Command.(*raft.InstallSnapshotRequest); ok {
				g.install(rpc, request)
			} else {
				g.pass(rpc)
			}
		case <-g.stop:
			return
		}
	}
}

// pass hands rpc to raft; false if the guard was closed.
func (g *guard) pass(rpc raft.RPC) bool {
	select {
	case g.out <- rpc:
		return true
	case <-g.stop:
		return false
	}
}

// install decides about a snapshot.
func (g *guard) install(rpc raft.RPC, request *raft.InstallSnapshotRequest) {
	if !g.settle() {
		return
	}
	leader := raft.ServerAddress(request.Addr)
	rpc.Reader = newStallReader(rpc.Reader, func() { g.breakLinks(leader) })
	switch verdict, err := g.judge(request.LastLogIndex, request.LastLogTerm); {
	case err != nil:
		rpc.Respond(&raft.InstallSnapshotResponse{Term: request.Term}, err)
		g.breakLinks(leader) // it would go on sending
	case verdict == snapshotKnown:
		go answerKnown(rpc, request)
	case verdict == snapshotConflicts:
		g.logger.Warn("log conflicts with the leader's snapshot", "index", request.LastLogIndex, "term", request.LastLogTerm)
		rpc.Respond(&raft.InstallSnapshotResponse{Term: request.Term}, errConflictingLog)
		g.breakLinks(leader)
		go g.restart(request.LastLogIndex)
	default:
		g.pass(g.watched(rpc, request.LastLogIndex))
	}
}

var errConflictingLog = errors.New("the log conflicts with the snapshot and is being cut")

// settle waits until raft has done all that was passed to it: only then does the
// log say what it will be when raft gets the snapshot. Raft does one thing after
// the other, and answers a request of term 0 without doing anything.
func (g *guard) settle() bool {
	answer := make(chan raft.RPCResponse, 1)
	nothing := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
	if !g.pass(raft.RPC{Command: nothing, RespChan: answer}) {
		return false
	}
	select {
	case <-answer:
		return true
	case <-g.stop:
		return false
	}
}

type snapshotVerdict int

const (
	snapshotNew snapshotVerdict = iota
	snapshotKnown
	snapshotConflicts
)

// judge compares a snapshot with what is here.
func (g *guard) judge(index, term uint64) (snapshotVerdict, error) {
	newest, err := newestSnapshot(g.snapshots)
	if err != nil {
		return 0, err
	}
	if index <= max(g.applied(), newest.Index) {
		return snapshotKnown, nil
	}
	last, err := g.log.LastIndex()
	if err != nil {
		return 0, fmt.Errorf("read last index: %w", err)
	}
	if last < index {
		return snapshotNew, nil
	}
	matches, err := hasEntry(g.log, index, term)
	switch {
	case err != nil:
		return 0, err
	case matches:
		return snapshotKnown, nil
	}
	return snapshotConflicts, nil
}

// newestSnapshot describes the newest one; the zero value if there is none.
func newestSnapshot(snapshots raft.SnapshotStore) (raft.SnapshotMeta, error) {
	list, err := snapshots.List()
	if err != nil {
		return raft.SnapshotMeta{}, fmt.Errorf("list snapshots: %w", err)
	}
	if len(list) == 0 {
		return raft.SnapshotMeta{}, nil
	}
	return *list[0], nil
}

// hasEntry reports whether the log has an entry of this index and term.
func hasEntry(log raft.LogStore, index, term uint64) (bool, error) {
	var e raft.Log
	err := log.GetLog(index, &e)
	if errors.Is(err, raft.ErrLogNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read entry %d: %w", index, err)
	}
	return e.Term == term, nil
}

// answerKnown reads a snapshot to its end, since the leader looks at the answer
// only then, and answers as if it were installed.
func answerKnown(rpc raft.RPC, request *raft.InstallSnapshotRequest) {
	_, err := io.Copy(io.Discard, rpc.Reader)
	rpc.Respond(&raft.InstallSnapshotResponse{Term: request.Term, Success: err == nil}, err)
}

// watched is rpc with an ear for the answer, and a look at raft after a snapshot was
// installed: its last index must be that of the snapshot. It is not if this node
// appended entries of its own after judge, as a leader of some moments.
func (g *guard) watched(rpc raft.RPC, index uint64) raft.RPC {
	answer, asked := make(chan raft.RPCResponse, 1), rpc.RespChan
	rpc.RespChan = answer
	go func() {
		select {
		case a := <-answer:
			g.installed(a.Error) // before the answer, which the next one may follow
			asked <- a
			installed, ok := a.Response.(*raft.InstallSnapshotResponse)
			if ok && installed.Success && g.last() > index {
				g.restart(index)
			}
		case <-g.stop:
		}
	}()
	return rpc
}

// restart opens raft anew without the log from an index on.
func (g *guard) restart(from uint64) {
	err := g.reopen(func() error { return cutLog(g.log, from) })
	if err != nil && !errors.Is(err, ErrNoLeader) { // it says that the node ends
		g.fatal(fmt.Errorf("open raft anew: %w", err))
	}
}

// cutLog drops the entries from an index on.
func cutLog(log raft.LogStore, from uint64) error {
	last, err := log.LastIndex()
	if err == nil && last >= from {
		err = log.DeleteRange(from, last)
	}
	if err != nil {
		return fmt.Errorf("cut log: %w", err)
	}
	return nil
}

// mendLog finishes what a crash cut off: a snapshot was installed, and the log
// that conflicts with it not yet dropped. It must run before raft is opened.
func mendLog(log raft.LogStore, snapshots raft.SnapshotStore) error {
	newest, err := newestSnapshot(snapshots)
	if err != nil || newest.Index == 0 {
		return err
	}
	var e raft.Log
	switch err := log.GetLog(newest.Index, &e); {
	case errors.Is(err, raft.ErrLogNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read entry %d: %w", newest.Index, err)
	case e.Term == newest.Term:
		return nil
	}
	first, err := log.FirstIndex()
	if err != nil {
		return fmt.Errorf("read first index: %w", err)
	}
	return cutLog(log, first)
}

// stallReader calls stalled when a Read takes too long, which should make it fail.
type stallReader struct {
	io.Reader
	timer *time.Timer
}

func newStallReader(r io.Reader, stalled func()) *stallReader {
	timer := time.AfterFunc(snapshotStall, stalled)
	timer.Stop()
	return &stallReader{r, timer}
}

func (r *stallReader) Read(p []byte) (int, error) {
	r.timer.Reset(snapshotStall)
	defer r.timer.Stop()
	return r.Reader.Read(p)
}
