package raftfsm

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

// memorySink is a raft.SnapshotSink in memory that can take so many bytes.
type memorySink struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("sink is full")

func (s *memorySink) Write(b []byte) (int, error) {
	if s.Len()+len(b) > s.room {
		return 0, errFull
	}
	return s.Buffer.Write(b)
}

func (*memorySink) ID() string    { return "snapshot" }
func (*memorySink) Close() error  { return nil }
func (*memorySink) Cancel() error { return nil }

func snapshotOf(t testing.TB, m *Machine) []byte {
	t.Helper()
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	sink := &memorySink{room: 1 << 30}
	if err := s.Persist(sink); err != nil {
		t.Fatal(err)
	}
	return sink.Bytes()
}

func restore(m *Machine, snapshot []byte) error {
	return m.Restore(io.NopCloser(bytes.NewReader(snapshot)))
}

// randomLog applies n random entries to m, which logs them.
func randomLog(m *testMachine, seed uint64, n int) {
	r := rand.New(rand.NewPCG(seed, 0))
	receipts := map[sqs.QueueKey][]sqs.Receipt{}
	for range n {
		commands := make([]Command, 1+r.IntN(4))
		for i := range commands {
			commands[i] = randomCommand(r, receipts)
		}
		for i, o := range m.Apply(m.entry(commands...)).(*Applied).Outcomes {
			if received, ok := o.Result.(sqs.ReceiveMessageResult); ok {
				q := commands[i].(sqs.ReceiveMessage).Queue
				for _, message := range received.Messages {
					receipts[q] = append(receipts[q], message.Receipt)
				}
			}
		}
		m.now += sqs.Time(r.IntN(15_000))
	}
}

func randomQueue(r *rand.Rand, fifo bool) string {
	if fifo {
		return fmt.Sprintf("f%d.fifo", r.IntN(2))
	}
	return fmt.Sprint("q", r.IntN(3))
}

func randomCommand(r *rand.Rand, receipts map[sqs.QueueKey][]sqs.Receipt) Command {
	fifo := r.IntN(3) == 0
	q := testQueue(randomQueue(r, fifo))
	receipt := func() sqs.Receipt {
		if have := receipts[q]; len(have) > 0 {
			return have[r.IntN(len(have))]
		}
		return testReceipt()
	}
	switch r.IntN(20) {
	case 0, 1:
		if fifo {
			return sqs.CreateQueue{Queue: q, Attributes: []sqs.Attribute{{Name: sqs.ContentBasedDeduplication, Value: "true"}, {Name: sqs.FifoQueue, Value: "true"}}}
		}
		return sqs.CreateQueue{Queue: q, Tags: []sqs.Tag{{Key: "k", Value: fmt.Sprint(r.IntN(2))}}}
	case 2:
		attribute := sqs.Attribute{Name: sqs.MessageRetentionPeriod, Value: fmt.Sprint(60 + r.IntN(600))}
		return sqs.SetQueueAttributes{Queue: q, Attributes: []sqs.Attribute{attribute}}
	case 3:
		target := testQueue(randomQueue(r, fifo))
		return sqs.SetQueueAttributes{Queue: q, Attributes: []sqs.Attribute{{
			Name:    sqs.RedrivePolicyAttribute,
			Value:   fmt.Sprintf("to %s", target.Name),
			Redrive: &sqs.RedrivePolicy{Target: target, MaxReceiveCount: 1 + r.IntN(3)},
		}}}
	case 4:
		return randomTask(r, q)
	case 5:
		return Pulse{}
	case 6:
		if r.IntN(4) == 0 {
			return sqs.DeleteQueue{Queue: q}
		}
		return sqs.PurgeQueue{Queue: q}
	case 7:
		return SetSetting{Name: "inflight-limit", Value: fmt.Sprint(r.IntN(100))}
	case 8, 9, 10:
		return sqs.DeleteMessageBatch{Queue: q, Receipts: []sqs.Receipt{receipt(), receipt()}}
	case 11, 12:
		timeout := time.Duration(r.IntN(60)) * time.Second
		return sqs.ChangeMessageVisibilityBatch{Queue: q, Entries: []sqs.VisibilityEntry{{Receipt: receipt(), Timeout: timeout}}}
	case 13, 14, 15:
		return sqs.ReceiveMessage{Queue: q, MaxMessages: 1 + r.IntN(10), VisibilityTimeout: sqs.QueueDefault, Short: r.IntN(2) == 0, AttemptID: []string{"", "a"}[r.IntN(2)]}
	}
	send := testSend(q, 1+r.IntN(10))
	for i := range send.Entries {
		e := &send.Entries[i]
		e.MessageID[1] = byte(r.IntN(256))
		if fifo {
			e.GroupID, e.BodySHA256 = fmt.Sprint("g", r.IntN(4)), [32]byte{byte(1 + r.IntN(200))}
			continue
		}
		if r.IntN(4) == 0 {
			e.Delay = time.Duration(r.IntN(30)) * time.Second
		}
	}
	return send
}

// randomTask is mostly a start, with or without destination and rate.
func randomTask(r *rand.Rand, q sqs.QueueKey) Command {
	task := sqs.TaskID{1, byte(r.IntN(8))}
	switch r.IntN(6) {
	case 0:
		return sqs.GetQueueAttributes{Queue: q}
	case 1:
		return sqs.CancelMessageMoveTask{Source: q, Task: task}
	case 2:
		return sqs.ListMessageMoveTasks{Source: q, Limit: 10}
	}
	c := sqs.StartMessageMoveTask{Source: q, Task: task, MaxPerSecond: r.IntN(2) * r.IntN(100), Limit: uint64(r.IntN(2) * r.IntN(5))}
	if destination := testQueue(fmt.Sprint("q", r.IntN(3))); r.IntN(2) == 0 {
		c.Destination = &destination
	}
	return c
}

// told is all that a proposer gets to know of an entry.
func told(t testing.TB, applied any) string {
	t.Helper()
	f := fields{}
	for _, o := range applied.(*Applied).Outcomes {
		outcomeFields(&f, &o)
		for _, fetch := range o.Bodies {
			b, err := fetch()
			if err != nil {
				t.Fatal(err)
			}
			f.bytes(b)
		}
	}
	return string(f.data)
}

// TestTwoMachinesOneLog: replicas that apply the same log in batches of other
// sizes have the same digests and the same state.
func TestTwoMachinesOneLog(t *testing.T) {
	one := newTestMachine(t)
	randomLog(one, 1, 300)
	other := New(newMemoryBodies(), nil).WithoutRecovery()
	for log := one.log; len(log) > 0; {
		n := min(7, len(log))
		other.ApplyBatch(log[:n])
		log = log[n:]
	}
	if one.state.digest.sum != other.state.digest.sum {
		t.Errorf("digests differ: %x, %x", one.state.digest.sum, other.state.digest.sum)
	}
	if !bytes.Equal(snapshotOf(t, one.Machine), snapshotOf(t, other)) {
		t.Error("snapshots differ")
	}
}

// TestRestoreAtEveryIndex: a replica that was restored from a snapshot at any
// index answers every later entry as the one that wrote the snapshot does, and
// ends in the same state.
func TestRestoreAtEveryIndex(t *testing.T) {
	for seed := range uint64(3) {
		source := newTestMachine(t)
		randomLog(source, 100+seed, 120)
		writer := New(newMemoryBodies(), nil).WithoutRecovery()
		var answers []string
		var snapshots [][]byte
		for _, l := range source.log {
			snapshots = append(snapshots, snapshotOf(t, writer))
			answers = append(answers, told(t, writer.Apply(l)))
		}
		want := snapshotOf(t, writer)
		for at, snapshot := range snapshots {
			m := New(newMemoryBodies(), nil).WithoutRecovery()
			if err := restore(m, snapshot); err != nil {
				t.Fatalf("seed %d: restore at %d: %v", seed, at, err)
			}
			if again := snapshotOf(t, m); !bytes.Equal(again, snapshot) {
				t.Fatalf("seed %d: the snapshot at %d differs after a restore", seed, at)
			}
			for i, l := range source.log[at:] {
				if got := told(t, m.Apply(l)); got != answers[at+i] {
					t.Fatalf("seed %d: restored at %d: entry %d: got %x, want %x", seed, at, l.Index, got, answers[at+i])
				}
			}
			if !bytes.Equal(snapshotOf(t, m), want) {
				t.Fatalf("seed %d: restored at %d: it ends in another state", seed, at)
			}
		}
	}
}

// TestRestoreSwapsEverything: what the machine held before is gone, and its
// quick answers are those of the new state.
func TestRestoreSwapsEverything(t *testing.T) {
	source := newTestMachine(t)
	randomLog(source, 5, 20)
	source.must(SetSetting{Name: "public-url", Value: "https://sqs.example.org"})
	target, q := newTestMachine(t), testQueue("old")
	target.must(sqs.CreateQueue{Queue: q})
	if err := restore(target.Machine, snapshotOf(t, source.Machine)); err != nil {
		t.Fatal(err)
	}
	settings := target.Settings()
	if target.AppliedIndex() != source.AppliedIndex() || settings.PublicURL != "https://sqs.example.org" {
		t.Errorf("got index %d, public URL %s", target.AppliedIndex(), settings.PublicURL)
	}
	if settings.HandleKeys[0].macs == nil {
		t.Error("the restored keys have no pools")
	}
	sourceSettings := source.Settings()
	if got, ok := settings.ParseHandle(sourceSettings.MintHandle(testReceipt())); !ok || got != testReceipt() {
		t.Errorf("a handle of before: got %v %v", got, ok)
	}
	target.View(func(v View) {
		if _, ok := v.Queues().WaitTime(q); ok {
			t.Error("the old queue is still there")
		}
	})
}

// TestSnapshotIsOfItsMoment: entries applied before Persist are not in it.
func TestSnapshotIsOfItsMoment(t *testing.T) {
	m := newTestMachine(t)
	randomLog(m, 9, 60)
	want := snapshotOf(t, m.Machine)
	s := m.freeze()
	randomLog(m, 10, 60)
	sink := &memorySink{room: 1 << 30}
	if err := s.Persist(sink); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sink.Bytes(), want) {
		t.Error("the snapshot has changed after it was taken")
	}
}

func TestPersistToAFullSink(t *testing.T) {
	m := newTestMachine(t)
	randomLog(m, 9, 60)
	size := len(snapshotOf(t, m.Machine))
	for _, room := range []int{0, 8, 16, size / 2, size - 1} {
		if err := m.freeze().Persist(&memorySink{room: room}); !errors.Is(err, errFull) {
			t.Errorf("room for %d of %d bytes: got %v, want %v", room, size, err, errFull)
		}
	}
}

// TestRestoreRefusesDamage flips every byte of a snapshot and cuts it
// everywhere. The machine must stay as it was.
func TestRestoreRefusesDamage(t *testing.T) {
	source := newTestMachine(t)
	randomLog(source, 3, 12)
	snapshot := snapshotOf(t, source.Machine)
	target := newTestMachine(t)
	randomLog(target, 4, 12)
	before := snapshotOf(t, target.Machine)
	check := func(name string, damaged []byte) {
		t.Helper()
		if err := restore(target.Machine, damaged); err == nil {
			t.Fatalf("%s: it was accepted", name)
		}
	}
	for i := range snapshot {
		damaged := bytes.Clone(snapshot)
		damaged[i] ^= 0x10
		check(fmt.Sprint("byte ", i, " changed"), damaged)
	}
	bodies := bytes.Index(snapshot, []byte("content ")) - 16 // of the first body's record
	for n := range bodies {
		check(fmt.Sprint(n, " bytes"), snapshot[:n])
	}
	target.bodies.corked = true
	check("bodies that do not open", snapshot)
	target.bodies.corked = false
	if err := target.Restore(io.NopCloser(iotest.TimeoutReader(bytes.NewReader(snapshot)))); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("got %v, want %v", err, iotest.ErrTimeout)
	}
	if !bytes.Equal(snapshotOf(t, target.Machine), before) {
		t.Error("a refused snapshot has changed the machine")
	}
}

// TestRestoreRefusesSettings: a program must not obey a state whose rules it
// does not know, nor one without what it relies on.
func TestRestoreRefusesSettings(t *testing.T) {
	changes := map[string]func(*Settings){
		"newer version": func(s *Settings) { s.Version = StateVersion + 1 },
		"no version":    func(s *Settings) { s.Version = 0 },
		"no keys":       func(s *Settings) { s.HandleKeys = nil },
	}
	for name, change := range changes {
		source := newTestMachine(t)
		change(source.state.settings)
		if err := restore(New(newMemoryBodies(), nil), snapshotOf(t, source.Machine)); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
}

// TestRestoreOfAnotherVersion: a state that a newer program wrote is told from a
// damaged one, whichever part of it is new.
func TestRestoreOfAnotherVersion(t *testing.T) {
	m := newTestMachine(t)
	sections := m.freeze().sections()
	spoil := func(section, at int) []byte {
		snapshot, full := []byte(snapshotMagic), xxhash.New()
		for i, encode := range sections {
			var data []byte
			encode(func(part []byte) { data = append(data, part...) })
			if i == section {
				data[at]++
			}
			_, _ = full.Write(data)
			snapshot = append(binary.BigEndian.AppendUint64(snapshot, uint64(len(data))), data...)
			snapshot = binary.BigEndian.AppendUint64(snapshot, xxhash.Sum64(data))
		}
		return binary.BigEndian.AppendUint64(snapshot, full.Sum64())
	}
	var machine []byte
	sections[0](func(part []byte) { machine = append(machine, part...) })
	settings := bytes.Index(machine, append([]byte{settingsFormat, 3}, "c-1"...))
	last := fields{}
	settingsFields(&last, *m.state.settings)
	version := settings + len(last.data) - 1
	newer := spoil(-1, 0)
	newer[len(snapshotMagic)-1]++
	for name, snapshot := range map[string][]byte{
		"snapshot": newer, "machine": spoil(0, 0), "settings": spoil(0, settings), "behaviour": spoil(0, version),
		"queues": spoil(1, 0), "topics": spoil(2, 0),
	} {
		if err := restore(New(newMemoryBodies(), nil), snapshot); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), " 2") {
			t.Errorf("%s: got %v, want %v with 2", name, err, ErrFormat)
		}
	}
}

// TestSnapshotDropsDeadBodies: after a snapshot nothing is kept of messages
// that were deleted before it.
func TestSnapshotDropsDeadBodies(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	m.must(sqs.CreateQueue{Queue: q})
	m.must(testSend(q, 3))
	m.must(sqs.PurgeQueue{Queue: q})
	m.must(testSend(q, 1))
	snapshotOf(t, m.Machine)
	if len(m.bodies.bodies) != 1 || m.bodies.bodies[4] == nil {
		t.Errorf("got %v, want body 4 alone", m.bodies.bodies)
	}
}

// TestHugeSection: a claimed size costs no memory.
func TestHugeSection(t *testing.T) {
	for size, want := range map[uint64]error{maxSection: io.ErrUnexpectedEOF, maxSection + 1: errSection, 1<<64 - 1: errSection} {
		snapshot := binary.BigEndian.AppendUint64([]byte(snapshotMagic), size)
		if err := restore(New(newMemoryBodies(), nil), append(snapshot, "short"...)); !errors.Is(err, want) {
			t.Errorf("size %d: got %v, want %v", size, err, want)
		}
	}
}

// repair makes the checksums of a snapshot right, so that a fuzzer gets past
// them.
func repair(snapshot []byte) []byte {
	b := bytes.Clone(snapshot)
	full := xxhash.New()
	rest := b[min(len(b), len(snapshotMagic)):]
	for range 2 {
		if len(rest) < 16 || binary.BigEndian.Uint64(rest) > uint64(len(rest)-16) {
			return b
		}
		size := binary.BigEndian.Uint64(rest)
		data := rest[8 : 8+size]
		_, _ = full.Write(data)
		binary.BigEndian.PutUint64(rest[8+size:], xxhash.Sum64(data))
		rest = rest[16+size:]
	}
	if len(rest) >= 8 {
		binary.BigEndian.PutUint64(rest, full.Sum64())
	}
	return b
}

func FuzzRestore(f *testing.F) {
	for seed := range uint64(3) {
		m := newTestMachine(f)
		randomLog(m, seed, int(seed)*20)
		f.Add(snapshotOf(f, m.Machine))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, snapshot := range [][]byte{data, repair(data)} {
			m := New(newMemoryBodies(), nil)
			if err := restore(m, snapshot); err != nil {
				if m.AppliedIndex() != 0 || m.Settings().ClusterID != "" {
					t.Errorf("refused (%v), but the machine has changed", err)
				}
				continue
			}
			exercise(t, m)
		}
	})
}

// exercise uses a restored state: whatever was in it, it works or refuses.
func exercise(t *testing.T, m *Machine) {
	t.Helper()
	if err := m.freeze().Persist(&memorySink{room: 1 << 30}); err != nil && len(m.bodies.(*memoryBodies).bodies) > 0 {
		t.Logf("persist: %v", err) // bodies may be missing
	}
	if m.AppliedIndex() == 1<<64-1 {
		return
	}
	entry := AppendEntryHeader(nil, m.state.now)
	for i := range 3 {
		receive := sqs.ReceiveMessage{Queue: testQueue(fmt.Sprint("q", i)), MaxMessages: 10, VisibilityTimeout: sqs.QueueDefault}
		b, err := AppendCommand(nil, receive, nil)
		if err != nil {
			t.Fatal(err)
		}
		entry = AppendOperation(entry, Origin{}, b)
	}
	m.Apply(&raft.Log{Index: m.AppliedIndex() + 1, Data: entry})
	if report, ok := m.LastPanic(); ok {
		t.Errorf("a restored state panics: %s\n%s", report.Value, report.Stack)
	}
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add([]byte{})
	entry := AppendOperation(AppendEntryHeader(nil, testStart), Origin{}, []byte("command"))
	f.Add(entry)
	f.Add(AppendOperation(entry, Origin{Session: 1, Number: 2, Acks: []NumberRange{{3, 4}, {6, 7}}}, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		now, operations, err := DecodeEntry(data)
		if err != nil {
			return
		}
		again := AppendEntryHeader(nil, now)
		for _, op := range operations {
			again = AppendOperation(again, op.Origin, op.Command)
		}
		nowAgain, operationsAgain, err := DecodeEntry(again)
		if err != nil || nowAgain != now || len(operationsAgain) != len(operations) {
			t.Errorf("%x: once decoded and encoded: %d %v %v", data, nowAgain, operationsAgain, err)
		}
	})
}

func FuzzDecodeCommand(f *testing.F) {
	for _, c := range filledCommands() {
		b, err := AppendCommand(nil, c, bodiesFor(c))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, bodies, err := DecodeCommand(data)
		if err != nil {
			return
		}
		once, err := AppendCommand(nil, c, bodies)
		if err != nil {
			t.Fatalf("%x: decoded, but not to be encoded: %v", data, err)
		}
		c, bodies, err = DecodeCommand(once)
		if err != nil {
			t.Fatalf("%x: %v", once, err)
		}
		if twice, err := AppendCommand(nil, c, bodies); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s: encoded again: %s %v", hex.EncodeToString(once), hex.EncodeToString(twice), err)
		}
	})
}

// apartReader is a reader of a store that keeps bodies apart from the state, in
// raft's wrapper.
type apartReader struct {
	io.ReadCloser // what another node gets
	state         io.ReadCloser
}

func (r apartReader) WrappedReadCloser() io.ReadCloser { return unwrapped(r) }

type unwrapped apartReader

func (r unwrapped) StateReader() io.ReadCloser { return r.state }

func TestRestoreFromTheNodesOwnSnapshot(t *testing.T) {
	m := newTestMachine(t)
	randomLog(m, 3, 30)
	snapshot := snapshotOf(t, m.Machine)
	restored := newTestMachine(t)
	err := restored.Restore(apartReader{
		ReadCloser: io.NopCloser(strings.NewReader("for another node")),
		state:      io.NopCloser(bytes.NewReader(snapshot)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := snapshotOf(t, restored.Machine); !bytes.Equal(got, snapshot) {
		t.Error("another state was restored")
	}
}
