package raftfsm

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

var _ raft.BatchingFSM = (*Machine)(nil)

// Machine is the replicated state of one raft group. Raft calls ApplyBatch,
// Apply, Snapshot and Restore from one goroutine; everything else may be called
// from anywhere.
type Machine struct {
	bodies Bodies
	notify func([]sqs.Event)

	notifyTopics func([]sns.Event) // may be nil

	published atomic.Pointer[Settings] // == state.settings
	formed    chan struct{}            // closed when they are those of a cluster
	applied   atomic.Uint64            // == state.applied
	panics    atomic.Uint64
	lastPanic atomic.Pointer[PanicReport]
	watcher   atomic.Pointer[func(Step)]

	letPanic     bool              // do not recover the panics of commands
	planted      func(sqs.Command) // for tests of the recovery; called where a command is applied
	plantedTopic func(sns.Command) // the same

	receivers   receivers
	signatures  signatures
	permissions permissions // only while an entry is applied

	mu    sync.RWMutex
	state state

	// Room that is used again with every entry. Only the goroutine of raft's
	// calls touches it.
	names       interner
	entry       entryRoom
	contents    [][]byte
	events      []sqs.Event
	told        map[sqs.QueueKey]struct{} // queues that have an event of a publish
	topicEvents []sns.Event
	encoded     []byte // results, for the digest
}

// state is what a snapshot holds, bodies apart.
type state struct {
	applied  uint64   // index of the newest entry
	now      sqs.Time // of the newest entry; it never goes back
	nextBody uint64   // numbers begin at 1
	settings *Settings
	digest   runningDigest
	sessions sessions
	queues   *sqs.State
	topics   *sns.State
}

// New returns a Machine without queues, and with DefaultSettings until Form
// comes. It calls notify, if there is one, without its lock after every batch
// that had events; notify must not keep the slice.
func New(bodies Bodies, notify func([]sqs.Event)) *Machine {
	m := &Machine{bodies: bodies, notify: notify, formed: make(chan struct{})}
	m.install(state{
		nextBody: 1,
		settings: DefaultSettings().published(),
		queues:   sqs.New(),
		topics:   sns.New(),
	})
	return m
}

// NotifyTopics has f called, as notify of New is, after every batch that had
// events of topics. It comes before the first entry.
func (m *Machine) NotifyTopics(f func([]sns.Event)) { m.notifyTopics = f }

// WithoutRecovery makes the panics of commands end the process, and returns m.
// It is for tests, which want to see them, and comes before all other calls.
func (m *Machine) WithoutRecovery() *Machine {
	m.letPanic = true
	return m
}

// install makes s the state. The caller holds the lock or is alone.
func (m *Machine) install(s state) {
	m.state = s
	m.announce()
	m.applied.Store(s.applied)
	m.receivers.restart(s.topics)
	m.permissions.restart(s.queues)
}

// announce makes the settings of the state those that Settings returns. The caller
// holds the lock or is alone.
func (m *Machine) announce() {
	m.published.Store(m.state.settings)
	select {
	case <-m.formed:
	default:
		if m.state.settings.ClusterID != "" {
			close(m.formed)
		}
	}
}

// View is the state as it is during a call of Machine.View.
type View struct {
	state   *state
	machine *Machine
}

// Queues may be used for its reading methods only.
func (v View) Queues() *sqs.State { return v.state.queues }

// Topics may be used for its reading methods only.
func (v View) Topics() *sns.State { return v.state.topics }

// Now is the cluster time of the newest entry.
func (v View) Now() sqs.Time { return v.state.now }

// Settings are those that the next entry will find.
func (v View) Settings() Settings { return *v.state.settings }

// Body takes hold of the content of a message, with the number and the copy that
// Received or Peeked has, to be read at any time; false if
// the node does not have it.
func (v View) Body(number uint64, c sqs.Copy) (Fetch, bool) { return v.machine.resolve(number, c) }

// Sessions is the number of sessions that have not ended.
func (v View) Sessions() int { return len(v.state.sessions.list) }

// Unacknowledged is the number of results that sessions keep.
func (v View) Unacknowledged() (n int) {
	for _, s := range v.state.sessions.list {
		n += len(s.kept)
	}
	return n
}

// Applied is the index of the newest entry.
func (v View) Applied() uint64 { return v.state.applied }

// View calls f with the state, which stands still meanwhile and is invalid
// afterwards. Views may run beside each other; f must not call the Machine.
func (m *Machine) View(f func(v View)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(View{&m.state, m})
}

// Settings are the replicated settings as of now. It takes no lock.
func (m *Machine) Settings() Settings { return *m.published.Load() }

// Formed is closed as soon as Settings are those of a cluster: when Form has been
// applied, or a snapshot restored. Before, they are DefaultSettings.
func (m *Machine) Formed() <-chan struct{} { return m.formed }

// AppliedIndex is the index of the newest entry that was really applied. Raft
// sends neither no-ops nor barriers here, so it may stay behind raft's own
// indexes while nothing is missing.
func (m *Machine) AppliedIndex() uint64 { return m.applied.Load() }

// NextBody is the number that the next body will get.
func (m *Machine) NextBody() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.nextBody
}

// NextPulse is the cluster time from which a Pulse has something to do; false
// means never, as things are.
func (m *Machine) NextPulse() (sqs.Time, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	at, ever := m.state.queues.NextPulse()
	if topic, due := m.state.topics.NextPulse(); due && (!ever || sqs.Time(topic) < at) {
		return sqs.Time(topic), true
	}
	return at, ever
}

// Digests are the running digests at the last 16 multiples of 4,096 entries,
// in order. Two replicas that differ at an index have different states.
func (m *Machine) Digests() []IndexedDigest {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.digest.list()
}

// Panics is the number of commands that panicked in this process.
func (m *Machine) Panics() uint64 { return m.panics.Load() }

// PanicReport tells where a command panicked.
type PanicReport struct {
	Index   uint64 // of the entry
	Command string // its name
	Queue   sqs.QueueKey
	Value   string // of the panic
	Stack   string
}

// LastPanic is the newest panic of a command in this process.
func (m *Machine) LastPanic() (PanicReport, bool) {
	if r := m.lastPanic.Load(); r != nil {
		return *r, true
	}
	return PanicReport{}, false
}
