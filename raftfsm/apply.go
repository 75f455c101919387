package raftfsm

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/hashicorp/raft"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// Applied is what ApplyBatch and Apply give back for an entry.
type Applied struct {
	Index    uint64    // of the entry
	Outcomes []Outcome // one for each operation, in their order
}

// Outcome is what became of one operation.
type Outcome struct {
	Index  uint64  // of the entry that executed it, also if this was a repetition
	Result Result  // nil for this package's own commands and on error
	Err    error   // nil, a *sqs.Error, *sns.Error, *SettingError or *SessionError: an answer, not a fault
	Bodies []Fetch // of a ReceiveMessageResult: one for each message, in order
}

// Fetch reads the content of a message, as it was given with the SendEntry. It
// may be called at any time, from any goroutine; nobody may change the bytes.
type Fetch func() ([]byte, error)

// ErrNoBody says that the node has no body of that number. The state is right,
// and other nodes may have it.
var ErrNoBody = errors.New("no such body")

// errPanicked answers a command that panicked.
var errPanicked = sqs.Error{
	Code:    sqs.InternalFailure,
	Message: "We encountered an internal error. Please try again.",
}

// Apply implements raft.FSM. It returns an *Applied.
func (m *Machine) Apply(entry *raft.Log) any {
	return m.ApplyBatch([]*raft.Log{entry})[0]
}

// ApplyBatch implements raft.BatchingFSM. It returns an *Applied for every
// command entry and nil for every configuration. An entry that this program
// cannot read makes it panic: the other replicas would go on without it.
func (m *Machine) ApplyBatch(entries []*raft.Log) []any {
	applied := make([]any, len(entries))
	m.applyAll(entries, applied)
	if len(m.events) > 0 && m.notify != nil {
		m.notify(m.events)
	}
	if len(m.topicEvents) > 0 && m.notifyTopics != nil {
		m.notifyTopics(m.topicEvents)
	}
	return applied
}

func (m *Machine) applyAll(entries []*raft.Log, applied []any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events, m.topicEvents = m.events[:0], m.topicEvents[:0]
	clear(m.told)
	for i, e := range entries {
		if e.Index <= m.state.applied {
			panic(fmt.Sprintf("raftfsm: entry %d comes after entry %d", e.Index, m.state.applied))
		}
		m.state.digest.pass(m.state.applied, e.Index)
		if e.Type == raft.LogCommand {
			applied[i] = m.applyEntry(e)
		}
		m.state.digest.reach(e.Index)
		m.state.applied = e.Index
		m.applied.Store(e.Index)
	}
}

func (m *Machine) applyEntry(e *raft.Log) *Applied {
	t, err := m.entry.decode(e.Data)
	operations := m.entry.operations
	if err != nil {
		panic(fmt.Sprintf("raftfsm: entry %d: %v", e.Index, err))
	}
	m.state.now = max(m.state.now, t)
	applied := &Applied{Index: e.Index, Outcomes: make([]Outcome, len(operations))}
	out := m.state.digest.begin(m.encoded[:0], e.Index, t)
	for i := range operations {
		o := &applied.Outcomes[i]
		o.Index = e.Index
		m.applyOperation(o, &operations[i])
		outcomeFields(&out, o)
	}
	m.state.digest.finish(&out)
	m.encoded = out.data
	clear(operations) // or they would hold the entry's memory
	return applied
}

func (m *Machine) applyOperation(o *Outcome, op *Operation) {
	c, contents, err := appendBodies(m.contents[:0], op.Command, &m.names)
	if err != nil {
		panic(fmt.Sprintf("raftfsm: entry %d: %v", o.Index, err))
	}
	if op.Origin.Session == 0 {
		m.applyCommand(o, c, contents)
	} else {
		m.applyInSession(o, op.Origin, c, contents)
	}
	clear(contents)
	m.contents = contents
}

func (m *Machine) applyCommand(o *Outcome, c Command, contents [][]byte) {
	switch c := c.(type) {
	case sqs.Command:
		m.applyToQueues(o, c, contents)
	case sns.Command:
		m.applyToTopics(o, c, contents)
	case Pulse:
		m.pulse(o)
		m.pulseTopics(o)
	case OpenSession:
		o.Err = m.state.sessions.open(c, m.state.now)
	case SetSetting:
		o.Err = m.setSetting(o.Index, c)
	case AddSigningKey:
		o.Err = m.addSigningKey(c)
	case Form:
		o.Err = m.form(c)
	default:
		panic(fmt.Sprintf("raftfsm: entry %d: %T has a kind, but nobody to apply it", o.Index, c))
	}
}

// applyToQueues applies a command of sqs, and moves the bodies that it stored
// or hands out.
func (m *Machine) applyToQueues(o *Outcome, c sqs.Command, contents [][]byte) {
	watch := m.watched(o.Index, c)
	result, refusal, panicked := m.applyIsolated(o.Index, c)
	if panicked {
		// What the command has done is unknown: it may have stored messages
		// under any of these numbers, which must not be given to others then.
		for _, content := range contents {
			m.store(m.state.nextBody, content)
		}
		m.state.queues.Damage(c.Target())
	}
	if refusal != nil {
		o.Err = refusal
		return
	}
	o.Result = result
	m.permissions.follow(m.state.queues, c)
	if sent, ok := result.(sqs.SendMessageBatchResult); ok {
		m.storeSent(sent, contents)
	}
	if received, ok := result.(sqs.ReceiveMessageResult); ok {
		o.Bodies = m.pin(received.Messages)
	}
	if watch != nil {
		watch.result(c, o)
	}
}

func (m *Machine) storeSent(sent sqs.SendMessageBatchResult, contents [][]byte) {
	for i := range sent.Entries {
		if number := sent.Entries[i].Body; number != 0 {
			m.store(number, contents[i])
		}
	}
}

// applyIsolated is State.Apply, with a panic turned into a refusal. Apply is
// pure, so all replicas see the same panic.
func (m *Machine) applyIsolated(index uint64, c sqs.Command) (result sqs.Result, refusal *sqs.Error, panicked bool) {
	defer func() {
		if m.letPanic {
			return
		}
		if p := recover(); p != nil {
			m.report(PanicReport{Index: index, Command: CommandName(c), Queue: c.Target(), Value: fmt.Sprint(p)})
			result, refusal, panicked = nil, &errPanicked, true
		}
	}()
	if m.planted != nil {
		m.planted(c)
	}
	result, events, refusal := m.state.queues.Apply(m.moment(), c)
	m.addEvents(index, events)
	return result, refusal, false
}

// pulse is State.Pulse, isolated in the same way: what panics is the queue that it
// was at.
func (m *Machine) pulse(o *Outcome) {
	defer func() {
		if m.letPanic {
			return
		}
		if p := recover(); p != nil {
			queue, at := m.state.queues.Working()
			m.report(PanicReport{Index: o.Index, Command: CommandName(Pulse{}), Queue: queue, Value: fmt.Sprint(p)})
			if at {
				m.state.queues.Damage(queue)
			}
			o.Err = &errPanicked
		}
	}()
	m.addEvents(o.Index, m.state.queues.Pulse(m.moment()))
}

func (m *Machine) report(r PanicReport) {
	r.Stack = string(debug.Stack())
	m.lastPanic.Store(&r)
	m.panics.Add(1)
}

func (m *Machine) moment() sqs.Moment {
	return sqs.Moment{Now: m.state.now, NextBody: m.state.nextBody, Rules: m.state.settings.Rules}
}

func (m *Machine) store(number uint64, content []byte) {
	if number != m.state.nextBody {
		panic(fmt.Sprintf("raftfsm: body %d was stored, %d is next", number, m.state.nextBody))
	}
	m.bodies.Append(number, content)
	m.state.nextBody++
}

// pin takes hold of the messages' bodies while the lock makes sure that they
// are there.
func (m *Machine) pin(messages []sqs.Received) []Fetch {
	if len(messages) == 0 {
		return nil
	}
	fetches := make([]Fetch, len(messages))
	for i := range messages {
		number := messages[i].Body
		fetch, ok := m.resolve(number, messages[i].Copy)
		if !ok {
			fetch = func() ([]byte, error) { return nil, fmt.Errorf("fetch body %d: %w", number, ErrNoBody) }
		}
		fetches[i] = fetch
	}
	return fetches
}

// mergeWindow is how far addEvents looks back for an event's equal. To merge is
// only a saving, and most batches are about few queues.
const mergeWindow = 16

// addEvents adds to the batch's events those that it does not have yet. The
// order of different events of a queue stays. Moves are for the watcher alone.
func (m *Machine) addEvents(index uint64, events []sqs.Event) {
	for _, e := range events {
		switch {
		case e.Kind == sqs.MessageMoved:
			m.moved(index, e)
		case !m.hasEvent(e):
			m.events = append(m.events, e)
		}
	}
}

func (m *Machine) hasEvent(e sqs.Event) bool {
	recent := m.events[max(0, len(m.events)-mergeWindow):]
	for _, r := range slices.Backward(recent) {
		if r.Queue == e.Queue {
			return r.Kind == e.Kind
		}
	}
	return false
}

// setSetting changes a setting. The region stays while there are queues: the
// redrive policies that their owners wrote name queues with it. So does the account,
// in which clients look for what they have made.
func (m *Machine) setSetting(index uint64, c SetSetting) error {
	before := *m.state.settings
	s := before
	if err := s.Set(c.Name, c.Value); err != nil {
		return err
	}
	queues, topics := m.state.queues.HasQueues(), m.state.topics.HasTopics()
	switch {
	case s.Region != before.Region && queues:
		return &SettingError{c.Name, c.Value, "there are queues, whose policies name the region " + before.Region}
	case s.Account != before.Account && (queues || topics):
		return &SettingError{c.Name, c.Value, "there are queues or topics, which clients would not find any more in another account than " + before.Account}
	}
	m.publish(s)
	m.addEvents(index, m.state.queues.ChangeRules(m.moment(), before.Rules))
	return nil
}

func (m *Machine) form(c Form) error {
	current := m.state.settings.ClusterID
	switch {
	case current != "" && current == c.ClusterID:
		return nil
	case current != "":
		return &SettingError{"cluster-id", c.ClusterID, "the cluster is " + current}
	}
	s := c.Settings.withDefaults()
	s.ClusterID = c.ClusterID
	if err := s.Validate(); err != nil {
		return err
	}
	m.publish(s)
	return nil
}

func (m *Machine) publish(s Settings) {
	s.noteHosts(m.state.now)
	m.state.settings = s.published()
	m.announce()
}
