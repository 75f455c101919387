package raftfsm

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

const testStart sqs.Time = 1_700_000_000_000

// testMachine is a formed Machine that is told what to do one entry at a time.
type testMachine struct {
	*Machine
	t      testing.TB
	bodies *memoryBodies
	index  uint64
	now    sqs.Time
	log    []*raft.Log
	events []sqs.Event
}

func newTestMachine(t testing.TB) *testMachine {
	t.Helper()
	m := &testMachine{t: t, bodies: newMemoryBodies(), now: testStart}
	m.Machine = New(m.bodies, func(events []sqs.Event) { m.events = append(m.events, events...) }).WithoutRecovery()
	m.must(Form{ClusterID: "c-1", Settings: formedSettings()})
	return m
}

// entry makes an entry of commands, with a body for each SendEntry.
func (m *testMachine) entry(commands ...Command) *raft.Log {
	m.t.Helper()
	m.index++
	data := AppendEntryHeader(nil, m.now)
	for _, c := range commands {
		b, err := AppendCommand(nil, c, testContents(c, m.index))
		if err != nil {
			m.t.Fatal(err)
		}
		data = AppendOperation(data, Origin{}, b)
	}
	l := &raft.Log{Index: m.index, Type: raft.LogCommand, Data: data}
	m.log = append(m.log, l)
	return l
}

// testContents are the contents that a command has in an entry.
func testContents(c Command, index uint64) (contents [][]byte) {
	for i := range bodiesOf(c) {
		contents = append(contents, fmt.Appendf(nil, "content %d.%d", index, i))
	}
	return contents
}

func (m *testMachine) do(c Command) Outcome {
	m.t.Helper()
	return m.Apply(m.entry(c)).(*Applied).Outcomes[0]
}

func (m *testMachine) must(c Command) Outcome {
	m.t.Helper()
	o := m.do(c)
	if o.Err != nil {
		m.t.Fatalf("%T: %v", c, o.Err)
	}
	return o
}

func (m *testMachine) receive(q sqs.QueueKey) Outcome {
	m.t.Helper()
	return m.must(sqs.ReceiveMessage{Queue: q, MaxMessages: 10, VisibilityTimeout: sqs.QueueDefault})
}

func testQueue(name string) sqs.QueueKey { return sqs.QueueKey{Account: "000000000000", Name: name} }

func testSend(q sqs.QueueKey, n int) sqs.SendMessageBatch {
	c := sqs.SendMessageBatch{Queue: q, Entries: make([]sqs.SendEntry, n)}
	for i := range c.Entries {
		c.Entries[i] = sqs.SendEntry{MessageID: sqs.MessageID{byte(i + 1)}, Size: 11, Delay: sqs.QueueDefault}
	}
	return c
}

func fetched(t *testing.T, o Outcome) []string {
	t.Helper()
	var got []string
	for _, fetch := range o.Bodies {
		b, err := fetch()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(b))
	}
	return got
}

func TestSendAndReceive(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	m.must(sqs.CreateQueue{Queue: q})
	sent := m.must(testSend(q, 2))
	if sent.Index != 3 {
		t.Errorf("got index %d, want 3", sent.Index)
	}
	results := sent.Result.(sqs.SendMessageBatchResult).Entries
	if len(results) != 2 || results[0].Body != 1 || results[1].Body != 2 {
		t.Errorf("got %v, want bodies 1 and 2", results)
	}
	received := m.receive(q)
	if n := len(received.Result.(sqs.ReceiveMessageResult).Messages); n != 2 {
		t.Errorf("got %d messages, want 2", n)
	}
	if got, want := fetched(t, received), []string{"content 3.0", "content 3.1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if refused := m.do(testSend(testQueue("none"), 1)); !isCode(refused.Err, sqs.QueueDoesNotExist) || refused.Result != nil {
		t.Errorf("got %v %v, want %s", refused.Result, refused.Err, sqs.QueueDoesNotExist)
	}
}

func isCode(err error, code sqs.Code) bool {
	e, ok := errors.AsType[*sqs.Error](err)
	return ok && e.Code == code
}

// TestEntryOfManyOperations: each operation of an entry has an outcome of its
// own, and configurations have none.
func TestEntryOfManyOperations(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	first := m.entry(sqs.CreateQueue{Queue: q}, sqs.DeleteQueue{Queue: testQueue("none")}, testSend(q, 1))
	m.index++
	configuration := &raft.Log{Index: m.index, Type: raft.LogConfiguration, Data: []byte("not ours")}
	got := m.ApplyBatch([]*raft.Log{first, configuration, m.entry()})
	if len(got) != 3 || got[1] != nil {
		t.Fatalf("got %v, want three, none for the configuration", got)
	}
	outcomes := got[0].(*Applied).Outcomes
	if len(outcomes) != 3 || outcomes[0].Err != nil || outcomes[1].Err == nil || outcomes[2].Err != nil {
		t.Errorf("got %v, want an error for the second alone", outcomes)
	}
	if empty := got[2].(*Applied); empty.Index != 4 || len(empty.Outcomes) != 0 {
		t.Errorf("got %v, want no outcomes at index 4", empty)
	}
	if m.AppliedIndex() != 4 {
		t.Errorf("got applied index %d, want 4", m.AppliedIndex())
	}
	m.View(func(v View) {
		if v.Applied() != 4 || v.Now() != testStart || v.Settings().ClusterID != "c-1" {
			t.Errorf("got view %d %d %v", v.Applied(), v.Now(), v.Settings())
		}
		if n := v.Queues().Available(q, v.Now(), 10); n != 1 {
			t.Errorf("got %d available, want 1", n)
		}
	})
}

// TestTimeNeverGoesBack: an entry of a leader whose clock is behind does not
// lengthen a lease.
func TestTimeNeverGoesBack(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	m.must(sqs.CreateQueue{Queue: q})
	m.must(testSend(q, 1))
	m.now = testStart + 60_000
	m.receive(q)
	m.now = testStart
	m.receive(q)
	m.View(func(v View) {
		if want := testStart + 60_000; v.Now() != want {
			t.Errorf("got %d, want %d", v.Now(), want)
		}
	})
	m.now = testStart + 60_000 + 31_000
	if n := len(m.receive(q).Bodies); n != 1 {
		t.Errorf("got %d messages after the visibility timeout, want 1", n)
	}
}

func TestNotify(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	m.must(sqs.CreateQueue{Queue: q})
	m.events = nil
	m.ApplyBatch([]*raft.Log{m.entry(testSend(q, 2), testSend(q, 1)), m.entry(testSend(q, 1))})
	want := []sqs.Event{{Kind: sqs.MessagesAvailable, Queue: q}}
	if !slices.Equal(m.events, want) {
		t.Errorf("got %v, want %v", m.events, want)
	}
	m.events = nil
	m.ApplyBatch([]*raft.Log{m.entry(testSend(q, 1), sqs.DeleteQueue{Queue: q}, sqs.CreateQueue{Queue: q}, testSend(q, 1))})
	available, deleted := sqs.Event{Kind: sqs.MessagesAvailable, Queue: q}, sqs.Event{Kind: sqs.QueueDeleted, Queue: q}
	if want := []sqs.Event{available, deleted, available}; !slices.Equal(m.events, want) {
		t.Errorf("got %v, want %v", m.events, want)
	}
}

func TestForm(t *testing.T) {
	m := newTestMachine(t)
	if err := m.do(Form{ClusterID: "c-1"}).Err; err != nil {
		t.Errorf("again with the same id: %v", err)
	}
	if len(m.Settings().HandleKeys) != 1 {
		t.Error("forming again has changed the settings")
	}
	if _, ok := errors.AsType[*SettingError](m.do(Form{ClusterID: "c-2", Settings: formedSettings()}).Err); !ok || m.Settings().ClusterID != "c-1" {
		t.Errorf("another id was taken: %s", m.Settings().ClusterID)
	}

	fresh := New(newMemoryBodies(), nil)
	entry := func(index uint64, c Command) Outcome {
		b, err := AppendCommand(nil, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		data := AppendOperation(AppendEntryHeader(nil, 1), Origin{}, b)
		return fresh.Apply(&raft.Log{Index: index, Data: data}).(*Applied).Outcomes[0]
	}
	if o := entry(1, Form{ClusterID: "c-3"}); o.Err == nil || fresh.Settings().ClusterID != "" {
		t.Errorf("a cluster was formed without keys: %v", o.Err)
	}
	if o := entry(2, Form{ClusterID: "c-3", Settings: Settings{HandleKeys: []HandleKey{testKey(1, 0)}}}); o.Err != nil {
		t.Errorf("a seed with keys alone: %v", o.Err)
	}
	if s := fresh.Settings(); s.Region != "us-east-1" || s.Account != "000000000000" || s.Rules.InFlightLimit != 120_000 {
		t.Errorf("got %v, want the defaults for what the seed left out", s.List())
	}
}

// TestSetSettingChangesRules: a setting holds from the next command on.
func TestSetSettingChangesRules(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	m.must(sqs.CreateQueue{Queue: q})
	m.must(testSend(q, 3))
	m.must(SetSetting{Name: "inflight-limit", Value: "2"})
	if got := m.Settings().Rules.InFlightLimit; got != 2 {
		t.Errorf("got limit %d, want 2", got)
	}
	if n := len(m.receive(q).Bodies); n != 2 {
		t.Errorf("got %d messages, want 2", n)
	}
	if err := m.do(SetSetting{Name: "inflight-limit", Value: "none"}).Err; err == nil || m.Settings().Rules.InFlightLimit != 2 {
		t.Errorf("got %v, limit %d", err, m.Settings().Rules.InFlightLimit)
	}
	handle := m.Settings()
	if got, ok := handle.ParseHandle(handle.MintHandle(testReceipt())); !ok || got != testReceipt() {
		t.Errorf("handle after a change of settings: %v %v", got, ok)
	}
}

func TestPulse(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	m.must(sqs.CreateQueue{Queue: q, Attributes: []sqs.Attribute{{Name: sqs.MessageRetentionPeriod, Value: "60"}}})
	m.must(testSend(q, 3))
	at, ok := m.NextPulse()
	if !ok || at < testStart+60_000 {
		t.Fatalf("got %d %v, want a pulse when the messages expire", at, ok)
	}
	m.now = at
	if o := m.must(Pulse{}); o.Result != nil {
		t.Errorf("got %v, want no result", o.Result)
	}
	m.View(func(v View) {
		if totals := v.Queues().Totals(v.Now()); totals.Visible != 0 {
			t.Errorf("got %d visible, want 0", totals.Visible)
		}
	})
}

// TestPanicIsIsolated: a panic costs the command its answer and the queue its
// service, and nothing else.
func TestPanicIsIsolated(t *testing.T) {
	m, q, other := newTestMachine(t), testQueue("q"), testQueue("other")
	m.letPanic = false
	m.planted = func(c sqs.Command) {
		if send, ok := c.(sqs.SendMessageBatch); ok && send.Entries[0].GroupID == "boom" {
			panic("planted")
		}
	}
	m.must(sqs.CreateQueue{Queue: q})
	m.must(sqs.CreateQueue{Queue: other})
	bad := testSend(q, 2)
	bad.Entries[0].GroupID = "boom"
	applied := m.Apply(m.entry(bad, testSend(other, 1))).(*Applied)
	if err := applied.Outcomes[0].Err; !isCode(err, sqs.InternalFailure) {
		t.Errorf("got %v, want %s", err, sqs.InternalFailure)
	}
	if err := applied.Outcomes[1].Err; err != nil {
		t.Errorf("the next command of the entry: %v", err)
	}
	if err := m.do(testSend(q, 1)).Err; !isCode(err, sqs.InternalFailure) {
		t.Errorf("the damaged queue: got %v, want %s", err, sqs.InternalFailure)
	}
	if got, want := fetched(t, m.receive(other)), []string{"content 4.0"}; !slices.Equal(got, want) {
		t.Errorf("the other queue: got %q, want %q", got, want)
	}
	if report, ok := m.LastPanic(); m.Panics() != 1 || !ok || report.Index != 4 || report.Value != "planted" ||
		report.Queue != q || report.Command != "SendMessageBatch" || !strings.Contains(report.Stack, "machine_test.go") {
		t.Errorf("got %d panics, the last one %+v", m.Panics(), report)
	}
	for number, want := range map[uint64]string{1: "content 4.0", 2: "content 4.1"} {
		if got := string(m.bodies.bodies[number]); got != want {
			t.Errorf("body %d of the send that panicked: got %q, want %q", number, got, want)
		}
	}
	m.must(sqs.DeleteQueue{Queue: q})
}

// TestPulsePanicIsIsolated: a Pulse that panics damages the queue that it was at, and
// the next one goes on with the others.
func TestPulsePanicIsIsolated(t *testing.T) {
	m, q, other := newTestMachine(t), testQueue("q"), testQueue("other")
	m.letPanic = false
	for _, one := range []sqs.QueueKey{q, other} {
		m.must(sqs.CreateQueue{Queue: one})
		m.must(testSend(one, 1))
		m.receive(one)
		m.now++
	}
	m.spoil(q)
	m.now = m.now.Add(5 * 24 * time.Hour)
	if err := m.do(Pulse{}).Err; !isCode(err, sqs.InternalFailure) {
		t.Errorf("got %v, want %s", err, sqs.InternalFailure)
	}
	if report, ok := m.LastPanic(); m.Panics() != 1 || !ok || report.Queue != q || report.Command != "Pulse" {
		t.Errorf("got %d panics, the last one %+v", m.Panics(), report)
	}
	m.must(Pulse{})
	census := m.state.queues.Census(m.now)
	if len(census) != 2 || census[0].Damaged || !census[1].Damaged || m.state.queues.Messages() != 0 {
		t.Errorf("got %d messages in %+v", m.state.queues.Messages(), census)
	}
}

// spoil breaks the index of a queue, as no command can: its leases are lost.
func (m *testMachine) spoil(q sqs.QueueKey) {
	queue := reflect.ValueOf(m.state.queues).Elem().FieldByName("queues").MapIndex(reflect.ValueOf(q)).Elem()
	leases := queue.FieldByName("messages").FieldByName("leases")
	reflect.NewAt(leases.Type(), leases.Addr().UnsafePointer()).Elem().SetZero()
}

// TestPanicsThatEndTheProcess are those that no answer can make good.
func TestPanicsThatEndTheProcess(t *testing.T) {
	header := slices.Clip(AppendEntryHeader(nil, testStart))
	cases := []struct {
		name string
		log  raft.Log
		want string
	}{
		{"no entry", raft.Log{Index: 9}, "entry 9"},
		{"unknown kind", raft.Log{Index: 9, Data: AppendOperation(header, Origin{}, []byte{99})}, "unknown kind 99"},
		{"cut off", raft.Log{Index: 9, Data: AppendOperation(header, Origin{}, []byte{1, 5})}, "SendMessageBatch"},
		{"old index", raft.Log{Index: 1, Data: header}, "entry 1 comes after entry 1"},
	}
	for _, c := range cases {
		m := newTestMachine(t)
		m.letPanic = false
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("%s: got %q, want %q", c.name, got, c.want)
				}
			}()
			m.Apply(&c.log)
		}()
	}
}

// TestMissingBody: a body that this node lost is a fault of the node, not of
// the state.
func TestMissingBody(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	m.must(sqs.CreateQueue{Queue: q})
	m.must(testSend(q, 2))
	delete(m.bodies.bodies, 1)
	o := m.receive(q)
	if _, err := o.Bodies[0](); !errors.Is(err, ErrNoBody) {
		t.Errorf("got %v, want %v", err, ErrNoBody)
	}
	if b, err := o.Bodies[1](); err != nil || string(b) != "content 3.1" {
		t.Errorf("got %q %v", b, err)
	}
}

// TestViewsDuringApply is for the race detector: what the leader asks for
// waiters runs beside apply.
func TestViewsDuringApply(t *testing.T) {
	m, q := newTestMachine(t), testQueue("q")
	m.must(sqs.CreateQueue{Queue: q})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			m.View(func(v View) {
				v.Queues().Available(q, v.Now(), 10)
				v.Queues().NextAvailable(q, v.Now())
				v.Queues().WaitTime(q)
				v.Queues().Totals(v.Now())
				v.Queues().Census(v.Now())
			})
			m.NextPulse()
			m.Digests()
			settings := m.Settings()
			settings.MintHandle(sqs.Receipt{ReceivedAt: sqs.Time(m.AppliedIndex())})
		}
	}()
	for i := range 200 {
		m.must(testSend(q, 2))
		m.receive(q)
		m.now += sqs.Time(time.Second.Milliseconds())
		m.must(SetSetting{Name: "inflight-limit", Value: fmt.Sprint(1000 + i)})
	}
	close(stop)
	<-done
}
