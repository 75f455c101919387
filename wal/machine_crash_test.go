package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

// machineScript is a log of entries, made beside a machine in memory that is
// never cut, and that machine's full digest after each of them.
type machineScript struct {
	machine  *raftfsm.Machine
	now      sqs.Time
	entries  []*raft.Log
	digests  []uint64 // by index
	marks    []uint64 // indexes at which snapshots are taken
	receipts map[sqs.QueueKey][]sqs.Receipt
}

// commandEntry is an entry of one command.
func commandEntry(index uint64, now sqs.Time, c raftfsm.Command, bodies [][]byte) *raft.Log {
	command, err := raftfsm.AppendCommand(nil, c, bodies)
	if err != nil {
		panic(err)
	}
	return &raft.Log{
		Index: index, Type: raft.LogCommand,
		Data: raftfsm.AppendOperation(raftfsm.AppendEntryHeader(nil, now), raftfsm.Origin{}, command),
	}
}

// applied is the outcome of an entry of one command, which must not be an error.
func applied(m *raftfsm.Machine, e *raft.Log) raftfsm.Outcome {
	outcome := m.Apply(e).(*raftfsm.Applied).Outcomes[0]
	if outcome.Err != nil {
		panic(outcome.Err)
	}
	return outcome
}

func (s *machineScript) do(c raftfsm.Command, bodies ...[]byte) raftfsm.Outcome {
	s.now++
	e := commandEntry(uint64(len(s.entries))+1, s.now, c, bodies)
	s.entries = append(s.entries, e)
	outcome := applied(s.machine, e)
	s.digests = append(s.digests, s.machine.FullDigest().Sum)
	return outcome
}

func (s *machineScript) send(q sqs.QueueKey, n, size int) {
	c := sqs.SendMessageBatch{Queue: q, Entries: make([]sqs.SendEntry, n)}
	bodies := make([][]byte, n)
	for i := range c.Entries {
		c.Entries[i] = sqs.SendEntry{Size: size, Delay: sqs.QueueDefault}
		bodies[i] = bodyOf(uint64(len(s.entries)*10+i), size)
	}
	s.do(c, bodies...)
}

func (s *machineScript) receive(q sqs.QueueKey, times int) {
	for range times {
		o := s.do(sqs.ReceiveMessage{Queue: q, MaxMessages: 10, VisibilityTimeout: time.Hour})
		for _, m := range o.Result.(sqs.ReceiveMessageResult).Messages {
			s.receipts[q] = append(s.receipts[q], m.Receipt)
		}
	}
}

// delete deletes what was received, but for every keep-th message.
func (s *machineScript) delete(q sqs.QueueKey, keep int) {
	c := sqs.DeleteMessageBatch{Queue: q}
	for i, r := range s.receipts[q] {
		if i%keep != 0 {
			c.Receipts = append(c.Receipts, r)
		}
		if len(c.Receipts) == 10 || i == len(s.receipts[q])-1 {
			s.do(c)
			c.Receipts = nil
		}
	}
	delete(s.receipts, q)
}

func (s *machineScript) mark() { s.marks = append(s.marks, uint64(len(s.entries))) }

// formation is the first command of a cluster.
func formation() raftfsm.Form {
	settings := raftfsm.DefaultSettings()
	settings.ClusterID, settings.HandleKeys = "c", []raftfsm.HandleKey{{ID: 1}}
	return raftfsm.Form{ClusterID: "c", Settings: settings}
}

// newMachineScript has three snapshots: the second one merges, the third one
// merges and removes.
func newMachineScript() *machineScript {
	s := &machineScript{
		machine: raftfsm.New(NewBodies(), nil).WithoutRecovery(), now: 1_700_000_000_000,
		digests: []uint64{0}, receipts: map[sqs.QueueKey][]sqs.Receipt{},
	}
	s.do(formation())
	var queues []sqs.QueueKey
	for _, name := range []string{"read", "half", "kept", "purged"} {
		queues = append(queues, sqs.QueueKey{Account: "000000000000", Name: name})
		s.do(sqs.CreateQueue{Queue: queues[len(queues)-1]})
	}
	round := func() {
		for range 3 {
			for _, q := range queues {
				s.send(q, 7, 90)
			}
		}
	}
	round()
	s.mark()
	s.receive(queues[0], 3)
	s.delete(queues[0], 50)
	s.receive(queues[1], 2)
	s.delete(queues[1], 2)
	round()
	s.mark()
	s.do(sqs.PurgeQueue{Queue: queues[3]})
	s.receive(queues[1], 4)
	s.delete(queues[1], 9)
	round()
	s.mark()
	s.receive(queues[2], 1)
	s.delete(queues[2], 3)
	return s
}

// machineNode is a machine on the stores of a data directory.
type machineNode struct {
	machine   *raftfsm.Machine
	segments  *Segments
	snapshots *Snapshots
}

func openMachine(dir string, f files, limits segmentLimits) (*machineNode, error) {
	segments, err := OpenSegments(filepath.Join(dir, SegmentDir), SegmentOptions{
		Pause: func(time.Duration) {}, files: f, limits: limits,
	})
	if err != nil {
		return nil, err
	}
	snapshots, err := OpenSnapshots(filepath.Join(dir, SnapshotDir), SnapshotOptions{Segments: segments, files: f})
	if err != nil {
		return nil, err
	}
	n := &machineNode{raftfsm.New(segments, nil).WithoutRecovery(), segments, snapshots}
	list, err := snapshots.List()
	if err != nil || len(list) == 0 {
		return n, err
	}
	_, r, err := snapshots.Open(list[0].ID)
	if err != nil {
		return nil, err
	}
	return n, errors.Join(n.machine.Restore(r), r.Close())
}

// apply applies the entries that are missing up to an index.
func (n *machineNode) apply(s *machineScript, last uint64) {
	for i := n.machine.AppliedIndex(); i < last; i++ {
		n.machine.Apply(s.entries[i])
	}
}

func (n *machineNode) snapshot() error {
	state, err := n.machine.Snapshot()
	if err != nil {
		return err
	}
	sink, err := n.snapshots.Create(1, n.machine.AppliedIndex(), 1, voters, 1, nil)
	if err != nil {
		return err
	}
	if err := state.Persist(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// contentSink hashes what a snapshot for another node has: state and bodies.
type contentSink struct {
	raft.SnapshotSink
	sum *xxhash.Digest
}

func (s contentSink) Write(p []byte) (int, error) { return s.sum.Write(p) }

// contents is the hash of a machine's state and of all live bodies, as they are
// read.
func contents(m *raftfsm.Machine) (uint64, error) {
	state, err := m.Snapshot()
	if err != nil {
		return 0, err
	}
	sink := contentSink{sum: xxhash.New()}
	err = state.Persist(sink)
	return sink.sum.Sum64(), err
}

// TestDigestsAfterPowerCuts cuts the power after every call of a snapshot that
// merges and of one that also removes: what the next start restores has the full
// digest of a machine that was not cut, and so has it, with every body, after the
// rest of the log.
func TestDigestsAfterPowerCuts(t *testing.T) {
	script := newMachineScript()
	want, err := contents(script.machine)
	if err != nil {
		t.Fatal(err)
	}
	step := 1
	if underRace {
		step = 5
	}
	for _, variant := range []struct{ lateRemovals, keep bool }{{}, {true, false}, {true, true}} {
		restored := map[uint64]int{}
		for calls := 0; ; calls += step {
			made, reached, err := script.cutAfter(t.TempDir(), calls, want, variant.lateRemovals, variant.keep)
			if err != nil {
				t.Fatalf("power cut after %d calls, variant %v: %v", calls, variant, err)
			}
			restored[reached]++
			if made < calls {
				break
			}
		}
		for _, index := range script.marks {
			if restored[index] == 0 {
				t.Errorf("no power cut left the snapshot at %d: %v", index, restored)
			}
		}
	}
}

// cutAfter runs the script with so many calls that succeed from the second
// snapshot on. It returns the number of calls made and the index of the snapshot
// that the next start restored.
func (s *machineScript) cutAfter(dir string, calls int, want uint64, lateRemovals, keep bool) (made int, reached uint64, err error) {
	f := newFaultyFiles(-1)
	f.keep = keep
	if lateRemovals {
		f.attic = dir + ".attic"
		if err := os.Mkdir(f.attic, dirPermissions); err != nil {
			return 0, 0, err
		}
	}
	n, err := openMachine(dir, f, smallLimits)
	if err != nil {
		return 0, 0, err
	}
	n.apply(s, s.marks[0])
	if err := n.snapshot(); err != nil {
		return 0, 0, err
	}
	f.count, f.calls = 0, calls
	promised := s.marks[0]
	for _, index := range s.marks[1:] {
		n.apply(s, index)
		if n.snapshot() == nil {
			promised = index
		}
	}
	n.apply(s, uint64(len(s.entries)))
	made = f.count
	if err := errors.Join(s.compare(n, want), n.segments.Close(), f.cut()); err != nil {
		return 0, 0, fmt.Errorf("before the restart: %w", err)
	}
	if n, err = openMachine(dir, quickFiles{}, smallLimits); err != nil {
		return 0, 0, err
	}
	defer n.segments.Close()
	digest := n.machine.FullDigest()
	if digest.Index < promised {
		return 0, 0, fmt.Errorf("snapshot %d was finished, %d is there", promised, digest.Index)
	}
	if digest.Sum != s.digests[digest.Index] {
		return 0, 0, fmt.Errorf("restored at entry %d: digest %x, want %x", digest.Index, digest.Sum, s.digests[digest.Index])
	}
	n.apply(s, uint64(len(s.entries)))
	return made, digest.Index, s.compare(n, want)
}

// compare holds a node that has applied everything against the machine of the
// script.
func (s *machineScript) compare(n *machineNode, want uint64) error {
	last := len(s.entries)
	if got := n.machine.FullDigest(); got.Index != uint64(last) || got.Sum != s.digests[last] {
		return fmt.Errorf("at entry %d: digest %x, want %x at %d", got.Index, got.Sum, s.digests[last], last)
	}
	got, err := contents(n.machine)
	if err == nil && got != want {
		err = errors.New("the bodies differ")
	}
	return err
}
