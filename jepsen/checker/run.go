package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast.internal/jepsen/history"
)

// run is a history sorted by what it is about.
type run struct {
	options  Options
	sends    map[string]*history.Operation // by body
	messages []*message                    // by key
	byKey    map[key]*message
	receives map[string]*receives // by queue
	counts   []*history.Operation
	repeats  map[dedupKey][]*history.Operation // sends to FIFO queues that may have been stored
	attempts map[attemptKey]bool               // receives from FIFO queues without an answer
	faults   []time.Duration
	all      []history.Operation
}

type key struct{ queue, id string }

// attemptKey is what receives have in common that are the same attempt.
type attemptKey struct{ queue, attempt string }

// receives are the receives of one queue that say something besides what they
// handed out.
type receives struct {
	unknown []*history.Operation // Info, by call
	empty   []*history.Operation // OK and without messages, by call
	anew    []*history.Operation // OK, and may have been started anew
}

// unknownBefore returns how many receives without an answer were called before t.
func (r *receives) unknownBefore(t time.Duration) int {
	n, _ := slices.BinarySearchFunc(r.unknown, t, func(o *history.Operation, t time.Duration) int {
		return cmp.Compare(o.Call, t)
	})
	return n
}

// message is everything that a history tells about one message.
type message struct {
	key
	send     *history.Operation // the acknowledged send; nil if there is none
	handouts []*handout         // by receive count
	deletes  []*history.Operation
	changes  []*history.Operation
	accepts  []*history.Operation // all acknowledged sends that got its id
}

func (m *message) String() string { return m.queue + " message " + m.id }

// deletable returns when a delete may first have taken effect; Never if none can.
func (m *message) deletable() time.Duration {
	first := history.Never
	for _, d := range m.deletes {
		if d.Outcome != history.Fail {
			first = min(first, d.Call)
		}
	}
	return first
}

// handout is one message in one answer.
type handout struct {
	*history.Operation // the receive
	delivery           *history.Delivery
	visibility         time.Duration
	renewable          bool          // an attempt without an answer may begin the lease anew at any time
	earliest           time.Duration // it was not handed out before
	end                time.Duration // its deadline was not before
	latest             time.Duration // its deadline was not after; Never if unknown
}

func newRun(operations []history.Operation, o Options) *run {
	r := &run{
		options: o, sends: map[string]*history.Operation{}, byKey: map[key]*message{},
		receives: map[string]*receives{}, all: operations, repeats: map[dedupKey][]*history.Operation{},
		attempts: map[attemptKey]bool{},
	}
	for i := range operations {
		switch o := &operations[i]; {
		case o.Kind == history.Fault:
			r.faults = append(r.faults, o.Call)
		case o.Kind == history.Receive && o.Outcome == history.Info && o.Attempt != "":
			r.attempts[attemptKey{o.Queue, o.Attempt}] = true
		}
	}
	handles := map[string]*message{}
	for i := range operations {
		r.addReceive(&operations[i], handles)
	}
	for i := range operations {
		r.addOther(&operations[i], handles)
	}
	slices.SortFunc(r.messages, func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.id, b.id))
	})
	for _, m := range r.messages {
		slices.SortStableFunc(m.handouts, func(a, b *handout) int {
			return cmp.Or(cmp.Compare(a.delivery.Count, b.delivery.Count), cmp.Compare(a.Call, b.Call))
		})
		m.bound()
	}
	for _, q := range r.receives {
		byCall := func(a, b *history.Operation) int { return cmp.Compare(a.Call, b.Call) }
		slices.SortFunc(q.unknown, byCall)
		slices.SortFunc(q.empty, byCall)
	}
	return r
}

func (r *run) message(queue, id string) *message {
	k := key{queue, id}
	m := r.byKey[k]
	if m == nil {
		m = &message{key: k}
		r.byKey[k] = m
		r.messages = append(r.messages, m)
	}
	return m
}

func (r *run) queue(name string) *receives {
	q := r.receives[name]
	if q == nil {
		q = &receives{}
		r.receives[name] = q
	}
	return q
}

func (r *run) addReceive(o *history.Operation, handles map[string]*message) {
	if o.Kind != history.Receive {
		return
	}
	q := r.queue(o.Queue)
	switch {
	case o.Outcome == history.Info:
		q.unknown = append(q.unknown, o)
	case o.Outcome == history.OK && len(o.Messages) == 0:
		q.empty = append(q.empty, o)
	}
	if o.Outcome == history.OK && r.options.Cluster && r.nearFault(o) {
		q.anew = append(q.anew, o)
	}
	for i := range o.Messages {
		d := &o.Messages[i]
		h := &handout{Operation: o, delivery: d, visibility: r.visibility(o), renewable: r.attempts[attemptKey{o.Queue, o.Attempt}]}
		m := r.message(o.Queue, d.MessageID)
		m.handouts = append(m.handouts, h)
		handles[d.Handle] = m
	}
}

// visibility is how long the leases are that a receive grants.
func (r *run) visibility(o *history.Operation) time.Duration {
	if o.Visibility == history.QueueDefault {
		return r.options.Queues[o.Queue].VisibilityTimeout
	}
	return o.Visibility
}

// faultLasts bounds how long a fault and the recovery from it take.
const faultLasts = 30 * time.Second

// nearFault reports whether o may have been under way while a fault was felt.
func (r *run) nearFault(o *history.Operation) bool {
	return slices.ContainsFunc(r.faults, func(fault time.Duration) bool {
		return fault < o.Return && o.Call < fault+faultLasts
	})
}

func (r *run) addOther(o *history.Operation, handles map[string]*message) {
	switch o.Kind {
	case history.Send:
		r.sends[o.Body] = o
		if o.Outcome == history.OK {
			m := r.message(o.Queue, o.MessageID)
			m.send, m.accepts = o, append(m.accepts, o)
		}
		if o.DedupID != "" && o.Outcome != history.Fail {
			k := r.dedupKey(o)
			r.repeats[k] = append(r.repeats[k], o)
		}
	case history.Delete:
		if m := handles[o.Handle]; m != nil {
			m.deletes = append(m.deletes, o)
		}
	case history.Change:
		if m := handles[o.Handle]; m != nil {
			m.changes = append(m.changes, o)
		}
	case history.Count:
		r.counts = append(r.counts, o)
	}
}

// span tells when an operation happened, in seconds.
func span(o *history.Operation) string {
	if o.Return == history.Never {
		return fmt.Sprintf("[%.3f, unknown]", o.Call.Seconds())
	}
	return fmt.Sprintf("[%.3f, %.3f]", o.Call.Seconds(), o.Return.Seconds())
}

func seconds(t time.Duration) string {
	if t == history.Never {
		return "never"
	}
	return fmt.Sprintf("%.3f", t.Seconds())
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
