package raftfsm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

// operationEntry is an entry with one operation.
func (m *testMachine) operationEntry(o Origin, c Command) *raft.Log {
	m.t.Helper()
	m.index++
	b, err := AppendCommand(nil, c, testContents(c, m.index))
	if err != nil {
		m.t.Fatal(err)
	}
	data := AppendOperation(AppendEntryHeader(nil, m.now), o, b)
	l := &raft.Log{Index: m.index, Type: raft.LogCommand, Data: data}
	m.log = append(m.log, l)
	return l
}

// as applies a command in an entry of its own.
func (m *testMachine) as(o Origin, c Command) Outcome {
	m.t.Helper()
	return m.Apply(m.operationEntry(o, c)).(*Applied).Outcomes[0]
}

// TestSessions plays testdata/sessions: a conversation with one Machine that has
// the queue q, each command in an entry of its own.
//
//	open session=N
//	do session=N number=N [acks=1-3,7] [at=D]     the command is the input: send, receive, return, delete, count, missing
//	advance by=D
//	show                                           the sessions
//
// Rewrite the expected answers with 'go test ./raftfsm -run TestSessions -rewrite'.
func TestSessions(t *testing.T) {
	datadriven.Walk(t, "testdata/sessions", func(t *testing.T, path string) {
		s := &sessionScript{testMachine: newTestMachine(t)}
		s.must(sqs.CreateQueue{Queue: testQueue("q")})
		datadriven.RunTest(t, path, s.play)
	})
}

type sessionScript struct {
	*testMachine
	receipts []sqs.Receipt
}

func (s *sessionScript) play(t *testing.T, d *datadriven.TestData) string {
	var origin Origin
	var acks, by string
	d.MaybeScanArgs(t, "session", &origin.Session)
	d.MaybeScanArgs(t, "number", &origin.Number)
	d.MaybeScanArgs(t, "acks", &acks)
	d.MaybeScanArgs(t, "by", &by)
	origin.Acks = parseRanges(t, acks)
	switch d.Cmd {
	case "open":
		return outcomeText(s.as(Origin{}, OpenSession{Session: origin.Session, Node: "n1"}))
	case "advance":
		length, err := time.ParseDuration(by)
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(length)
		return ""
	case "show":
		return s.show()
	case "do":
		o := s.as(origin, s.command(strings.TrimSpace(d.Input)))
		if received, ok := o.Result.(sqs.ReceiveMessageResult); ok {
			for _, r := range received.Messages {
				s.receipts = append(s.receipts, r.Receipt)
			}
		}
		return outcomeText(o)
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return ""
}

func parseRanges(t *testing.T, text string) (ranges []NumberRange) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		r := NumberRange{}
		var err1, err2 error
		r.First, err1 = strconv.ParseUint(first, 10, 64)
		r.Last, err2 = strconv.ParseUint(last, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		ranges = append(ranges, r)
	}
	return ranges
}

func (s *sessionScript) command(name string) Command {
	q := testQueue("q")
	switch name {
	case "send":
		return testSend(q, 1)
	case "receive":
		return sqs.ReceiveMessage{Queue: q, MaxMessages: 2, VisibilityTimeout: time.Minute}
	case "return":
		newest := s.receipts[len(s.receipts)-1]
		return sqs.ChangeMessageVisibilityBatch{Queue: q, Entries: []sqs.VisibilityEntry{{Receipt: newest}}}
	case "delete":
		return sqs.DeleteMessageBatch{Queue: q, Receipts: s.receipts[len(s.receipts)-1:]}
	case "count":
		return sqs.GetQueueAttributes{Queue: q}
	case "missing":
		return sqs.DeleteQueue{Queue: testQueue("none")}
	}
	s.t.Fatalf("unknown command %q", name)
	return nil
}

// show lists the sessions: their finished numbers, and those with a result.
func (s *sessionScript) show() string {
	var b strings.Builder
	for _, one := range s.state.sessions.list {
		fmt.Fprintf(&b, "session %d of %s: finished", one.id, one.node)
		for _, r := range one.finished {
			fmt.Fprintf(&b, " %d-%d", r.First, r.Last)
		}
		b.WriteString(", kept")
		for _, r := range one.results() {
			fmt.Fprintf(&b, " %d", r.number)
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

// outcomeText tells an outcome with the index of the entry that decided it.
func outcomeText(o Outcome) string {
	text := fmt.Sprintf("entry %d: ", o.Index)
	if o.Err != nil {
		return text + o.Err.Error() + "\n"
	}
	switch r := o.Result.(type) {
	case sqs.SendMessageBatchResult:
		return text + fmt.Sprintf("stored as %d\n", r.Entries[0].Body)
	case sqs.ReceiveMessageResult:
		text += "received"
		for i, m := range r.Messages {
			content, err := o.Bodies[i]()
			text += fmt.Sprintf(" %d (%q %v, count %d)", m.Receipt.Sequence, content, err, m.ReceiveCount)
		}
		return text + "\n"
	case sqs.GetQueueAttributesResult:
		return text + fmt.Sprintf("%d visible, %d in flight\n", r.Visible, r.InFlight)
	case sqs.BatchResult:
		return text + fmt.Sprintf("errors %v\n", r.Errors)
	}
	return text + "done\n"
}

// sessionModel is the plainest form of the rules: it decides which operations are
// executed, and has a second Machine, without sessions, execute them.
type sessionModel struct {
	*testMachine
	sessions map[uint64]*modelSession
}

type modelSession struct {
	usedAt   sqs.Time
	finished map[uint64]bool
	kept     map[uint64]Outcome
}

func (m *sessionModel) do(o Origin, c Command, bodiesOfEntry uint64) Outcome {
	for id, s := range m.sessions {
		if s.usedAt.WindowEnd(15*time.Minute) <= m.now {
			delete(m.sessions, id)
		}
	}
	s := m.sessions[o.Session]
	if s == nil {
		return Outcome{Err: &SessionError{o.Session, o.Number, SessionUnknown}}
	}
	s.usedAt = m.now
	for _, r := range o.Acks {
		for n := r.First; n <= r.Last; n++ {
			s.finished[n] = true
			delete(s.kept, n)
		}
	}
	if s.finished[o.Number] {
		return Outcome{Err: &SessionError{o.Session, o.Number, NumberFinished}}
	}
	if before, ok := s.kept[o.Number]; ok {
		again, any := m.current(c, before)
		if any {
			return again
		}
		delete(s.kept, o.Number)
	}
	outcome := m.executed(c, bodiesOfEntry)
	_, question := c.(sqs.GetQueueAttributes)
	received, isReceive := outcome.Result.(sqs.ReceiveMessageResult)
	if foundNothing := isReceive && len(received.Messages) == 0; !question && !foundNothing {
		s.kept[o.Number] = outcome
	}
	return outcome
}

// executed applies a command with the contents that it has in an entry of the
// Machine under test.
func (m *sessionModel) executed(c Command, entry uint64) Outcome {
	m.index++
	b, err := AppendCommand(nil, c, testContents(c, entry))
	if err != nil {
		m.t.Fatal(err)
	}
	data := AppendOperation(AppendEntryHeader(nil, m.now), Origin{}, b)
	return m.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: data}).(*Applied).Outcomes[0]
}

// current leaves of a receive's messages those that are in flight since.
func (m *sessionModel) current(c Command, before Outcome) (Outcome, bool) {
	received, ok := before.Result.(sqs.ReceiveMessageResult)
	if !ok {
		return before, true
	}
	var current []sqs.Received
	for _, r := range received.Messages {
		page, _ := m.state.queues.Peek(c.(sqs.ReceiveMessage).Queue, m.now, sqs.InFlight, r.Receipt.Sequence-1, 1)
		if len(page.Messages) == 1 && page.Messages[0].Sequence == r.Receipt.Sequence && page.Messages[0].ReceiveCount == r.ReceiveCount {
			current = append(current, r)
		}
	}
	return Outcome{Result: sqs.ReceiveMessageResult{Messages: current}}, len(current) > 0
}

// TestSessionsAgainstModel: random operations of three sessions, with repetitions,
// acknowledgements in any order, and pauses. Every answer is the model's, and in
// the end the queues are as if every operation had come once. On the way the
// Machine is saved and restored, and a replica that gets the log in larger
// batches ends in the same state.
func TestSessionsAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newTestMachine(t)
		model := &sessionModel{testMachine: newTestMachine(t), sessions: map[uint64]*modelSession{}}
		for _, one := range []*testMachine{m, model.testMachine} {
			one.must(sqs.CreateQueue{Queue: testQueue("q")})
		}
		w := &sessionWorld{t: t, r: r, m: m, model: model, commands: map[[2]uint64]Command{}}
		for range 600 {
			w.step()
		}
		w.compareQueues()
		w.compareReplica()
		if len(m.state.sessions.list) != len(model.sessions) {
			t.Errorf("seed %d: got %d sessions, want %d", seed, len(m.state.sessions.list), len(model.sessions))
		}
		if w.executed == 0 || w.repeated == 0 || w.refused == 0 {
			t.Errorf("seed %d: %d executed, %d repeated, %d refused", seed, w.executed, w.repeated, w.refused)
		}
	}
}

type sessionWorld struct {
	t        *testing.T
	r        *rand.Rand
	m        *testMachine
	model    *sessionModel
	next     [4]uint64             // number of the next new operation, by session
	commands map[[2]uint64]Command // by session and number
	receipts []sqs.Receipt

	executed, repeated, refused int
}

func (w *sessionWorld) step() {
	w.t.Helper()
	w.m.now += sqs.Time(w.r.IntN(2_000))
	switch w.r.IntN(150) {
	case 0:
		w.m.now += sqs.Time(w.r.IntN(1_000_000)) // up to 16 minutes
	case 1:
		w.restore()
	}
	w.model.now = w.m.now
	session := uint64(1 + w.r.IntN(3))
	if w.r.IntN(20) == 0 {
		w.m.as(Origin{}, OpenSession{Session: session, Node: "n"})
		w.model.open(session)
		return
	}
	origin, c := w.operation(session)
	before := w.model.index
	want := w.model.do(origin, c, w.m.index+1)
	got := w.m.as(origin, c)
	w.count(got, w.model.index > before)
	if !reflect.DeepEqual(got.Result, want.Result) || !reflect.DeepEqual(got.Err, want.Err) {
		w.t.Fatalf("operation %+v %T: got %+v %v, want %+v %v", origin, c, got.Result, got.Err, want.Result, want.Err)
	}
	if received, ok := got.Result.(sqs.ReceiveMessageResult); ok {
		for i, message := range received.Messages {
			w.receipts = append(w.receipts, message.Receipt)
			if _, err := got.Bodies[i](); err != nil {
				w.t.Fatalf("operation %+v: %v", origin, err)
			}
		}
	}
}

func (m *sessionModel) open(id uint64) {
	if s := m.sessions[id]; s == nil || s.usedAt.WindowEnd(15*time.Minute) <= m.now {
		m.sessions[id] = &modelSession{finished: map[uint64]bool{}, kept: map[uint64]Outcome{}}
	}
	m.sessions[id].usedAt = m.now
}

func (w *sessionWorld) count(got Outcome, executed bool) {
	_, refused := errors.AsType[*SessionError](got.Err)
	switch {
	case refused:
		w.refused++
	case executed:
		w.executed++
	default:
		w.repeated++
	}
}

// operation is a new one or a repetition, with some acknowledgements.
func (w *sessionWorld) operation(session uint64) (Origin, Command) {
	last := w.next[session]
	o := Origin{Session: session, Number: last + 1}
	if last > 0 && w.r.IntN(3) == 0 {
		o.Number = last - min(last-1, uint64(w.r.IntN(12)))
	} else {
		w.next[session]++
	}
	c := w.commands[[2]uint64{session, o.Number}]
	if c == nil {
		c = w.command()
		w.commands[[2]uint64{session, o.Number}] = c
	}
	for first := uint64(1); w.r.IntN(2) == 0 && first <= last; {
		r := NumberRange{First: first + uint64(w.r.IntN(int(last-first)+1))}
		r.Last = min(r.First+uint64(w.r.IntN(5)), last+1)
		o.Acks, first = append(o.Acks, r), r.Last+1
	}
	return o, c
}

func (w *sessionWorld) command() Command {
	q := testQueue("q")
	receipt := testReceipt()
	if n := len(w.receipts); n > 0 {
		receipt = w.receipts[max(0, n-1-w.r.IntN(10))]
	}
	switch w.r.IntN(9) {
	case 0, 1, 2:
		return testSend(q, 1+w.r.IntN(3))
	case 3, 4, 5:
		return sqs.ReceiveMessage{Queue: q, MaxMessages: 1 + w.r.IntN(3), VisibilityTimeout: time.Duration(w.r.IntN(30)) * time.Second}
	case 6:
		return sqs.DeleteMessageBatch{Queue: q, Receipts: []sqs.Receipt{receipt}}
	case 7:
		timeout := time.Duration(w.r.IntN(2)*w.r.IntN(60)) * time.Second
		return sqs.ChangeMessageVisibilityBatch{Queue: q, Entries: []sqs.VisibilityEntry{{Receipt: receipt, Timeout: timeout}}}
	default:
		return sqs.GetQueueAttributes{Queue: q}
	}
}

// restore goes on with a Machine that was made of a snapshot.
func (w *sessionWorld) restore() {
	w.t.Helper()
	snapshot := snapshotOf(w.t, w.m.Machine)
	w.m.Machine = New(w.m.bodies, nil).WithoutRecovery()
	if err := restore(w.m.Machine, snapshot); err != nil {
		w.t.Fatal(err)
	}
}

func (w *sessionWorld) compareQueues() {
	w.t.Helper()
	got, want := w.m.state.queues.Freeze().AppendTo(nil), w.model.state.queues.Freeze().AppendTo(nil)
	if !reflect.DeepEqual(got, want) {
		w.t.Error("the queues are not as if every operation had come once")
	}
}

func (w *sessionWorld) compareReplica() {
	w.t.Helper()
	replica := New(newMemoryBodies(), nil).WithoutRecovery()
	for log := w.m.log; len(log) > 0; {
		n := min(len(log), 1+w.r.IntN(50))
		replica.ApplyBatch(log[:n])
		log = log[n:]
	}
	if replica.state.digest.sum != w.m.state.digest.sum {
		w.t.Error("a replica has another digest")
	}
}

// TestSessionIsFull: results that nobody acknowledges are bounded, and an
// acknowledgement makes room.
func TestSessionIsFull(t *testing.T) {
	m := newTestMachine(t)
	m.must(OpenSession{Session: 1})
	number := uint64(0)
	send := func(acks ...NumberRange) error {
		number++
		return m.as(Origin{1, number, acks}, sqs.DeleteQueue{Queue: testQueue("none")}).Err
	}
	for range maxOpenNumbers {
		if err := send(); !isCode(err, sqs.QueueDoesNotExist) {
			t.Fatalf("operation %d: got %v", number, err)
		}
	}
	if err, ok := errors.AsType[*SessionError](send()); !ok || err.Reason != SessionFull {
		t.Errorf("got %v, want %v", err, SessionFull)
	}
	if err := send(NumberRange{7, 7}); !isCode(err, sqs.QueueDoesNotExist) {
		t.Errorf("with an acknowledgement: got %v", err)
	}
	if err := send(NumberRange{0, 1<<64 - 1}); err == nil || len(m.state.sessions.list[0].kept) != 0 {
		t.Errorf("all is acknowledged: got %v and %d results", err, len(m.state.sessions.list[0].kept))
	}
}

// TestOldestGapIsClosed: acknowledgements with gaps do not make the state grow
// without end.
func TestOldestGapIsClosed(t *testing.T) {
	s := &session{kept: map[uint64]kept{1: {}, 3: {}, 5: {}}}
	for n := uint64(2); len(s.finished) < maxOpenNumbers; n += 2 {
		s.finish(NumberRange{n, n})
	}
	if !s.finished.Has(2) || s.finished.Has(3) || len(s.kept) != 3 {
		t.Fatalf("got %d results before the limit", len(s.kept))
	}
	s.finish(NumberRange{1 << 40, 1 << 40})
	if len(s.finished) != maxOpenNumbers || !s.finished.Has(1) || !s.finished.Has(3) || s.finished.Has(5) || len(s.kept) != 1 {
		t.Errorf("got %d ranges, the first %v, and %d results", len(s.finished), s.finished[0], len(s.kept))
	}
}

// TestIdlestSessionEnds when there are too many.
func TestIdlestSessionEnds(t *testing.T) {
	m := newTestMachine(t)
	for id := range uint64(maxSessions) {
		m.must(OpenSession{Session: id + 1})
		m.now++
	}
	m.as(Origin{Session: 1, Number: 1}, Pulse{})
	m.now++
	m.must(OpenSession{Session: 1 << 40})
	for id, want := range map[uint64]bool{1: true, 2: false, 3: true, maxSessions: true, 1 << 40: true} {
		if got := m.as(Origin{Session: id, Number: 2}, Pulse{}).Err == nil; got != want {
			t.Errorf("session %d: got %v, want %v", id, got, want)
		}
	}
	m.View(func(v View) {
		if v.Sessions() != maxSessions {
			t.Errorf("got %d sessions, want %d", v.Sessions(), maxSessions)
		}
	})
	if err := m.do(OpenSession{}).Err; err == nil {
		t.Error("a session without an id was opened")
	}
}

// TestSessionsInSnapshot: a snapshot has the sessions as they were when it was
// begun, and they count in the full digest.
func TestSessionsInSnapshot(t *testing.T) {
	m := newTestMachine(t)
	m.must(OpenSession{Session: 1, Node: "n1"})
	without := snapshotOf(t, m.Machine)
	m.as(Origin{1, 1, nil}, sqs.CreateQueue{Queue: testQueue("q")})
	m.as(Origin{1, 2, []NumberRange{{9, 9}}}, testSend(testQueue("q"), 1))
	frozen := m.freeze()
	m.as(Origin{1, 3, []NumberRange{{1, 2}}}, testSend(testQueue("q"), 1))
	sink := &memorySink{room: 1 << 20}
	if err := frozen.Persist(sink); err != nil {
		t.Fatal(err)
	}
	restored := New(newMemoryBodies(), nil)
	if err := restore(restored, sink.Bytes()); err != nil {
		t.Fatal(err)
	}
	want := []*session{{
		id: 1, node: "n1", usedAt: m.now, finished: NumberRanges{{9, 9}},
		kept: map[uint64]kept{1: {3, sqs.Done{}, nil}, 2: {4, restored.state.sessions.list[0].kept[2].result, nil}},
	}}
	if got := restored.state.sessions.list; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got[0], want[0])
	}
	if reflect.DeepEqual(without, sink.Bytes()) {
		t.Error("the sessions are not in the snapshot")
	}
	for _, damage := range []func(*session){
		func(s *session) { s.finished = NumberRanges{{5, 4}} },
		func(s *session) { s.finished = NumberRanges{{1, 2}, {3, 3}} },
		func(*session) { m.state.sessions.list = append(m.state.sessions.list, &session{id: 1}) },
	} {
		damage(m.state.sessions.list[0])
		if err := restore(New(newMemoryBodies(), nil), snapshotOf(t, m.Machine)); !errors.Is(err, errState) {
			t.Errorf("got %v, want %v", err, errState)
		}
	}
}

// TestRepetitionInOneEntry: an operation may come twice in one entry.
func TestRepetitionInOneEntry(t *testing.T) {
	m := newTestMachine(t)
	m.must(sqs.CreateQueue{Queue: testQueue("q")})
	m.must(OpenSession{Session: 1})
	b, err := AppendCommand(nil, testSend(testQueue("q"), 2), [][]byte{[]byte("a"), []byte("b")})
	if err != nil {
		t.Fatal(err)
	}
	data := AppendEntryHeader(nil, m.now)
	for range 2 {
		data = AppendOperation(data, Origin{Session: 1, Number: 1}, b)
	}
	m.index++
	steps := 0
	m.Watch(func(Step) { steps++ })
	o := m.Apply(&raft.Log{Index: m.index, Data: data}).(*Applied).Outcomes
	if !reflect.DeepEqual(o[0], o[1]) || m.state.nextBody != 3 || steps != 2 {
		t.Errorf("got %+v and %+v, next body %d, %d steps", o[0], o[1], m.state.nextBody, steps)
	}
}

func TestOutcomeRoundTrip(t *testing.T) {
	outcomes := []Outcome{
		{Index: 1},
		{Index: 2, Err: &sqs.Error{Code: sqs.OverLimit, Message: "m"}},
		{Index: 3, Err: &SettingError{"name", "value", "reason"}},
		{Index: 4, Err: &SessionError{5, 6, SessionFull}},
	}
	for i, r := range filledResults() {
		outcomes = append(outcomes, Outcome{Index: uint64(i), Result: r})
	}
	for _, want := range outcomes {
		b := AppendOutcome([]byte("before"), &want)[len("before"):]
		got, rest, err := DecodeOutcome(append(slices.Clip(b), "after"...))
		if err != nil || string(rest) != "after" || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %q, %v; want %+v", got, rest, err, want)
		}
		for n := range len(b) {
			if _, _, err := DecodeOutcome(b[:n]); err == nil && n > 1 {
				t.Errorf("%+v: %d of %d bytes were decoded", want, n, len(b))
			}
		}
	}
	if _, _, err := DecodeOutcome([]byte{1, 100}); !errors.Is(err, errOutcome) {
		t.Errorf("got %v, want %v", err, errOutcome)
	}
}
