package sqs_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

var (
	modelCommands = flag.Int("model.commands", 200_000, "commands that TestModel plays")
	modelSeed     = flag.Uint64("model.seed", 0, "seed of the only run of TestModel; 0 for new ones")
)

// TestModel plays random commands to a State and to a model that is too simple
// to be wrong, and compares every answer. A run ends after 5,000 commands, so
// that a failing seed is soon played again.
func TestModel(t *testing.T) {
	const run = 5000
	if *modelSeed != 0 {
		playModel(t, *modelSeed, *modelCommands)
		return
	}
	for done := 0; done < *modelCommands && !t.Failed(); done += run {
		playModel(t, rand.Uint64(), run)
	}
}

func playModel(t *testing.T, seed uint64, commands int) {
	t.Helper()
	g := newGenerator(seed)
	for i := range commands {
		if problem := g.step(t); problem != "" {
			t.Fatalf("command %d of seed %d (repeat with -model.seed=%d -model.commands=%d): %s", i, seed, seed, i+1, problem)
		}
	}
}

// modelQueue is a queue as a slice of messages, in the order of their sequence
// numbers.
type modelQueue struct {
	name                                string
	incarnation, sequence               uint64
	delay, retention, visibility        int // seconds
	maxSize, maxReceives                int
	target                              string
	purgedAt                            sqs.Time
	sent, sentBytes, received, deletion uint64
	messages                            []*modelMessage
}

type modelMessage struct {
	sequence, body      uint64
	sentAt, arrivedAt   sqs.Time
	visibleAt           sqs.Time
	firstReceivedAt     sqs.Time
	everReceived, moved bool
	received, carried   int
	from                string
}

// model keeps all queues by two loops and no cleverness.
type model struct {
	queues      []*modelQueue // by name
	reserved    map[string]sqs.Time
	incarnation uint64
}

func (m *model) queue(name string) *modelQueue {
	for _, q := range m.queues {
		if q.name == name {
			return q
		}
	}
	return nil
}

// expire drops what has expired everywhere.
func (m *model) expire(now sqs.Time) {
	for _, q := range m.queues {
		q.messages = slices.DeleteFunc(q.messages, func(x *modelMessage) bool {
			return x.sentAt.Add(seconds(q.retention)) <= now
		})
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// windowEnd is written out here so that the model does not trust Time.WindowEnd.
func windowEnd(now sqs.Time, d time.Duration) sqs.Time {
	ms := sqs.Time(d / time.Millisecond)
	if ms <= 0 {
		return now
	}
	return now + ms + ms/1000 + 1
}

func (q *modelQueue) census(now sqs.Time) sqs.QueueCensus {
	c := sqs.QueueCensus{
		Queue: key(q.name), Incarnation: q.incarnation,
		Counters: sqs.Counters{Sent: q.sent, SentBytes: q.sentBytes, Received: q.received, Deleted: q.deletion},
	}
	for _, x := range q.messages {
		switch {
		case x.visibleAt <= now:
			c.Visible++
		case x.everReceived:
			c.InFlight++
		default:
			c.Delayed++
		}
		if x.received < 3 && (c.OldestSentAt == 0 || x.arrivedAt < c.OldestSentAt) {
			c.OldestSentAt = x.arrivedAt
		}
	}
	return c
}

func (m *model) apply(at sqs.Moment, c sqs.Command) (sqs.Result, string) {
	m.expire(at.Now)
	q := m.queue(c.Target().Name)
	if create, ok := c.(sqs.CreateQueue); ok {
		return m.create(at, q, create)
	}
	if q == nil {
		return nil, "QueueDoesNotExist: The specified queue does not exist."
	}
	switch c := c.(type) {
	case sqs.DeleteQueue:
		m.queues = slices.DeleteFunc(m.queues, func(other *modelQueue) bool { return other == q })
		if at.Rules.DeleteWait > 0 {
			m.reserved[q.name] = at.Now.Add(at.Rules.DeleteWait)
		}
	case sqs.SetQueueAttributes:
		if problem := m.redriveProblem(q.name, c.Attributes); problem != "" {
			return nil, problem
		}
		q.set(c.Attributes)
	case sqs.PurgeQueue:
		if q.purgedAt != 0 && at.Now.Sub(q.purgedAt) < at.Rules.PurgeWait {
			return nil, fmt.Sprintf("PurgeQueueInProgress: Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.name)
		}
		q.purgedAt, q.messages = at.Now, nil
	case sqs.SendMessageBatch:
		return q.send(at, c), ""
	case sqs.ReceiveMessage:
		return m.receive(at, q, c)
	case sqs.DeleteMessageBatch:
		return q.remove(c), ""
	case sqs.ChangeMessageVisibilityBatch:
		return q.change(at.Now, c), ""
	case sqs.ListDeadLetterSourceQueues:
		var r sqs.ListDeadLetterSourceQueuesResult
		for _, other := range m.queues {
			if other.target == q.name {
				r.Queues = append(r.Queues, key(other.name))
			}
		}
		return r, ""
	}
	return sqs.Done{}, ""
}

func (m *model) create(at sqs.Moment, q *modelQueue, c sqs.CreateQueue) (sqs.Result, string) {
	if q != nil {
		return sqs.Done{}, "" // the generator creates without attributes
	}
	if m.reserved[c.Queue.Name] > at.Now && at.Rules.DeleteWait > 0 {
		return nil, "QueueDeletedRecently: You must wait 60 seconds after deleting a queue before you can create another with the same name."
	}
	m.incarnation++
	m.queues = append(m.queues, &modelQueue{
		name: c.Queue.Name, incarnation: m.incarnation, retention: 345600, visibility: 30, maxSize: 1 << 20,
	})
	slices.SortFunc(m.queues, func(a, b *modelQueue) int { return cmp.Compare(a.name, b.name) })
	return sqs.Done{}, ""
}

func (m *model) redriveProblem(source string, attributes []sqs.Attribute) string {
	for _, a := range attributes {
		if a.Redrive != nil && m.queue(a.Redrive.Target.Name) == nil {
			return "InvalidParameterValueException: Value " + a.Value + " for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist."
		}
	}
	return ""
}

func (q *modelQueue) set(attributes []sqs.Attribute) {
	for _, a := range attributes {
		var n int
		fmt.Sscan(a.Value, &n)
		switch a.Name {
		case sqs.DelaySeconds:
			q.delay = n
		case sqs.VisibilityTimeout:
			q.visibility = n
		case sqs.MessageRetentionPeriod:
			q.retention = n
		case sqs.MaximumMessageSize:
			q.maxSize = n
		case sqs.RedrivePolicyAttribute:
			q.target, q.maxReceives = "", 0
			if a.Redrive != nil {
				q.target, q.maxReceives = a.Redrive.Target.Name, a.Redrive.MaxReceiveCount
			}
		}
	}
}

func (q *modelQueue) send(at sqs.Moment, c sqs.SendMessageBatch) sqs.Result {
	var r sqs.SendMessageBatchResult
	body := at.NextBody
	for _, e := range c.Entries {
		if e.Size > q.maxSize {
			r.Entries = append(r.Entries, sqs.SendResult{Err: &sqs.Error{Code: sqs.InvalidParameterValue, Message: fmt.Sprintf(
				"One or more parameters cannot be validated. Reason: Message must be shorter than %d bytes.", q.maxSize)}})
			continue
		}
		delay := e.Delay
		if delay == sqs.QueueDefault {
			delay = seconds(q.delay)
		}
		q.sequence++
		q.sent++
		q.sentBytes += uint64(e.Size)
		q.messages = append(q.messages, &modelMessage{
			sequence: q.sequence, body: body, sentAt: at.Now, arrivedAt: at.Now, visibleAt: windowEnd(at.Now, delay),
		})
		r.Entries = append(r.Entries, sqs.SendResult{Body: body, MessageID: e.MessageID})
		body++
	}
	return r
}

func (m *model) receive(at sqs.Moment, q *modelQueue, c sqs.ReceiveMessage) (sqs.Result, string) {
	most := min(c.MaxMessages, at.Rules.InFlightLimit-q.census(at.Now).InFlight)
	if most <= 0 && c.Short {
		return nil, fmt.Sprintf("OverLimit: The queue has the maximum number of messages in flight, %d.", at.Rules.InFlightLimit)
	}
	var visible []*modelMessage
	for _, x := range q.messages {
		if x.visibleAt <= at.Now {
			visible = append(visible, x)
		}
	}
	slices.SortStableFunc(visible, func(a, b *modelMessage) int {
		return cmp.Or(cmp.Compare(btoi(a.received >= 3), btoi(b.received >= 3)), cmp.Compare(a.sentAt, b.sentAt), cmp.Compare(a.sequence, b.sequence))
	})
	timeout := c.VisibilityTimeout
	if timeout == sqs.QueueDefault {
		timeout = seconds(q.visibility)
	}
	var r sqs.ReceiveMessageResult
	target := m.queue(q.target)
	moves := 0
	for _, x := range visible {
		if len(r.Messages) >= most {
			break
		}
		if target != nil && x.received >= q.maxReceives {
			if moves++; moves > 100 {
				break
			}
			q.moveTo(at.Now, target, x)
			continue
		}
		x.received++
		x.everReceived = true
		if x.firstReceivedAt == 0 {
			x.firstReceivedAt = at.Now
		}
		x.visibleAt = windowEnd(at.Now, timeout)
		q.received++
		got := sqs.Received{
			Receipt: sqs.Receipt{Incarnation: q.incarnation, Sequence: x.sequence, ReceiveNumber: uint32(x.received), ReceivedAt: at.Now},
			Body:    x.body, SentAt: x.sentAt, FirstReceivedAt: x.firstReceivedAt, ReceiveCount: x.carried + x.received,
		}
		if x.moved {
			got.DeadLetterSource = key(x.from)
		}
		r.Messages = append(r.Messages, got)
	}
	return r, ""
}

func (q *modelQueue) moveTo(now sqs.Time, target *modelQueue, x *modelMessage) {
	q.messages = slices.DeleteFunc(q.messages, func(other *modelMessage) bool { return other == x })
	target.sequence++
	target.messages = append(target.messages, &modelMessage{
		sequence: target.sequence, body: x.body, sentAt: x.sentAt, arrivedAt: now, visibleAt: now,
		firstReceivedAt: x.firstReceivedAt, carried: x.carried + x.received, moved: true, from: q.name, everReceived: true,
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (q *modelQueue) message(r sqs.Receipt) *modelMessage {
	for _, x := range q.messages {
		if x.sequence == r.Sequence {
			return x
		}
	}
	return nil
}

func (q *modelQueue) remove(c sqs.DeleteMessageBatch) sqs.Result {
	r := sqs.BatchResult{Errors: make([]*sqs.Error, len(c.Receipts))}
	for i, receipt := range c.Receipts {
		if receipt.Incarnation != q.incarnation {
			r.Errors[i] = &sqs.Error{Code: sqs.ReceiptHandleIsInvalid, Message: "The input receipt handle \"\x00handle\x00\" is not a valid receipt handle."}
			continue
		}
		q.deletion++
		gone := q.message(receipt)
		q.messages = slices.DeleteFunc(q.messages, func(x *modelMessage) bool { return x == gone })
	}
	return r
}

func (q *modelQueue) change(now sqs.Time, c sqs.ChangeMessageVisibilityBatch) sqs.Result {
	r := sqs.BatchResult{Errors: make([]*sqs.Error, len(c.Entries))}
	for i, e := range c.Entries {
		x := q.message(e.Receipt)
		switch {
		case e.Receipt.Incarnation != q.incarnation:
			r.Errors[i] = &sqs.Error{Code: sqs.ReceiptHandleIsInvalid, Message: "The input receipt handle \"\x00handle\x00\" is not a valid receipt handle."}
		case x == nil:
			r.Errors[i] = &sqs.Error{Code: sqs.InvalidParameterValue, Message: "Value \x00handle\x00 for parameter ReceiptHandle is invalid. " +
				"Reason: Message does not exist or is not available for visibility timeout change."}
		case int64(now-e.Receipt.ReceivedAt)/1000+int64(e.Timeout/time.Second) > 43200:
			r.Errors[i] = &sqs.Error{Code: sqs.InvalidParameterValue, Message: fmt.Sprintf("Value %d for parameter VisibilityTimeout is invalid. "+
				"Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", int(e.Timeout/time.Second))}
		default:
			x.visibleAt = windowEnd(now, e.Timeout)
		}
	}
	return r
}

// generator makes up commands and compares the answers.
type generator struct {
	*rand.Rand
	model    *model
	state    *sqs.State
	twin     *sqs.State // was thawed from the state some commands ago, and must stay equal
	at       sqs.Moment
	receipts [4][]sqs.Receipt // that were given out, by queue
	steps    int
}

func newGenerator(seed uint64) *generator {
	return &generator{
		Rand:  rand.New(rand.NewPCG(seed, 0)),
		model: &model{reserved: map[string]sqs.Time{}},
		state: sqs.New(),
		twin:  sqs.New(),
		at:    sqs.Moment{Now: scriptStart, NextBody: 1, Rules: sqs.Rules{InFlightLimit: 50, PurgeWait: time.Minute}},
	}
}

var modelQueues = []string{"a", "b", "c", "d"}

func (g *generator) step(t *testing.T) string {
	t.Helper()
	g.steps++
	g.passTime()
	if g.steps%1000 == 0 {
		if problem := g.changeTwin(t); problem != "" {
			return problem
		}
	}
	if g.IntN(50) == 0 {
		g.state.Pulse(g.at)
		g.twin.Pulse(g.at)
	}
	c := g.command()
	before := g.outlook()
	result, events, err := g.state.Apply(g.at, c)
	if other, _, _ := g.twin.Apply(g.at, c); !reflect.DeepEqual(other, result) {
		return fmt.Sprintf("%T%+v: the thawed twin answers %+v, not %+v", c, c, other, result)
	}
	wanted, refusal := g.model.apply(g.at, c)
	g.model.expire(g.at.Now) // a lower retention, or a move to a queue of a lower one
	if problem := compareAnswers(c, result, wanted, err, refusal); problem != "" {
		return problem
	}
	g.remember(c, result)
	if problem := g.compareEvents(before, events); problem != "" {
		return fmt.Sprintf("%T%+v: %s", c, c, problem)
	}
	return g.compareCensus(c)
}

func compareAnswers(c sqs.Command, got, want sqs.Result, err *sqs.Error, refusal string) string {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != refusal {
		return fmt.Sprintf("%T%+v: got refusal %q, want %q", c, c, text, refusal)
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("%T%+v:\n got %+v\nwant %+v", c, c, got, want)
	}
	return ""
}

// passTime lets nothing, a moment, or days go by.
func (g *generator) passTime() {
	switch g.IntN(40) {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		g.at.Now += sqs.Time(g.IntN(50))
	case 8, 9, 10:
		g.at.Now += sqs.Time(g.IntN(40_000))
	case 11:
		g.at.Now += sqs.Time(g.IntN(600_000))
	case 12:
		if g.IntN(50) == 0 {
			g.at.Now += sqs.Time(g.IntN(100 * 3600 * 1000))
		}
	}
	if g.IntN(2000) == 0 {
		g.at.Rules.InFlightLimit = 1 + g.IntN(60)
		g.at.Rules.DeleteWait = time.Duration(g.IntN(2)) * time.Minute
		g.state.Pulse(g.at)
		g.twin.Pulse(g.at)
	}
}

// changeTwin compares the twin with the state, goes on with the twin, and makes
// another one.
func (g *generator) changeTwin(t *testing.T) string {
	t.Helper()
	if problem := g.compareBodies(); problem != "" {
		return problem
	}
	if got, want := g.twin.Freeze().AppendTo(nil), g.state.Freeze().AppendTo(nil); !bytes.Equal(got, want) {
		return fmt.Sprintf("the thawed twin has become another\n got %x\nwant %x", got, want)
	}
	g.state, g.twin = g.twin, thaw(t, g.state)
	return ""
}

func (g *generator) command() sqs.Command {
	i := g.IntN(len(modelQueues))
	if g.IntN(2) == 0 {
		i = 0
	}
	q := key(modelQueues[i])
	switch n := g.IntN(1000); {
	case g.model.queue(q.Name) == nil, n < 3:
		return sqs.CreateQueue{Queue: q}
	case n < 5:
		return sqs.DeleteQueue{Queue: q}
	case n < 8:
		return sqs.PurgeQueue{Queue: q}
	case n < 20:
		return sqs.SetQueueAttributes{Queue: q, Attributes: g.attributes()}
	case n < 25:
		return sqs.ListDeadLetterSourceQueues{Queue: q, Limit: 10}
	case n < 350 && len(g.model.queue(q.Name).messages) < 190:
		return g.send(q)
	case n < 700:
		c := sqs.ReceiveMessage{Queue: q, MaxMessages: 1 + g.IntN(10), VisibilityTimeout: sqs.QueueDefault, Short: g.IntN(2) == 0}
		if g.IntN(2) == 0 {
			c.VisibilityTimeout = g.someSeconds(60)
		}
		return c
	case n < 880:
		c := sqs.DeleteMessageBatch{Queue: q}
		for range 1 + g.IntN(4) {
			c.Receipts = append(c.Receipts, g.receipt(i))
		}
		return c
	default:
		c := sqs.ChangeMessageVisibilityBatch{Queue: q}
		for range 1 + g.IntN(4) {
			timeout := g.someSeconds(60)
			if g.IntN(20) == 0 {
				timeout = seconds(43190 + g.IntN(11))
			}
			c.Entries = append(c.Entries, sqs.VisibilityEntry{Receipt: g.receipt(i), Timeout: timeout})
		}
		return c
	}
}

// someSeconds is 0 as often as all else.
func (g *generator) someSeconds(most int) time.Duration {
	return time.Duration(g.IntN(2)*g.IntN(most)) * time.Second
}

func (g *generator) send(q sqs.QueueKey) sqs.Command {
	c := sqs.SendMessageBatch{Queue: q}
	for range 1 + g.IntN(10) {
		e := sqs.SendEntry{MessageID: sqs.MessageID{byte(g.IntN(256))}, Size: 1 + g.IntN(1100), Delay: sqs.QueueDefault}
		if g.IntN(3) == 0 {
			e.Delay = g.someSeconds(90)
		}
		if g.IntN(3) == 0 {
			e.GroupID = strings.Repeat("g", 1+g.IntN(5))
		}
		c.Entries = append(c.Entries, e)
	}
	return c
}

func (g *generator) attributes() []sqs.Attribute {
	pick := func(choices ...string) string { return choices[g.IntN(len(choices))] }
	switch g.IntN(6) {
	case 0:
		return []sqs.Attribute{{Name: sqs.DelaySeconds, Value: pick("0", "0", "5", "100")}}
	case 1:
		return []sqs.Attribute{{Name: sqs.VisibilityTimeout, Value: pick("0", "5", "30", "3000")}}
	case 2:
		return []sqs.Attribute{{Name: sqs.MessageRetentionPeriod, Value: pick("60", "600", "345600", "345600")}}
	case 3:
		return []sqs.Attribute{{Name: sqs.MaximumMessageSize, Value: pick("1024", "1048576")}}
	case 4:
		return []sqs.Attribute{{Name: sqs.RedrivePolicyAttribute}}
	default:
		target := pick(modelQueues...)
		return []sqs.Attribute{{
			Name: sqs.RedrivePolicyAttribute, Value: "{" + target + "}",
			Redrive: &sqs.RedrivePolicy{Target: key(target), MaxReceiveCount: 1 + g.IntN(5)},
		}}
	}
}

// receipt is mostly one of the latest of a queue, sometimes an old one or that
// of another queue.
func (g *generator) receipt(queue int) sqs.Receipt {
	if g.IntN(40) == 0 {
		queue = g.IntN(len(modelQueues))
	}
	all := g.receipts[queue]
	if len(all) == 0 {
		return sqs.Receipt{Incarnation: 1 + uint64(g.IntN(4)), Sequence: 1 << 40, ReceiveNumber: 1, ReceivedAt: g.at.Now}
	}
	if g.IntN(3) > 0 {
		all = all[max(0, len(all)-20):]
	}
	return all[g.IntN(len(all))]
}

func (g *generator) remember(c sqs.Command, result sqs.Result) {
	i := slices.Index(modelQueues, c.Target().Name)
	switch r := result.(type) {
	case sqs.ReceiveMessageResult:
		for _, m := range r.Messages {
			g.receipts[i] = append(g.receipts[i], m.Receipt)
		}
		g.receipts[i] = g.receipts[i][max(0, len(g.receipts[i])-300):]
	case sqs.SendMessageBatchResult:
		for _, e := range r.Entries {
			g.at.NextBody = max(g.at.NextBody, e.Body+1)
		}
	}
}

// outlook is what the long polls of a queue know.
type outlook struct {
	available int
	next      sqs.Time
}

func (g *generator) outlook() (all [4]outlook) {
	for i, name := range modelQueues {
		all[i] = outlook{available: g.state.Available(key(name), g.at.Now, 1000), next: 1 << 62}
		if next, ok := g.state.NextAvailable(key(name), g.at.Now); ok {
			all[i].next = next
		}
	}
	return all
}

// compareEvents checks that whoever waits for a message hears of everything
// that makes the wait shorter.
func (g *generator) compareEvents(before [4]outlook, events []sqs.Event) string {
	for i, after := range g.outlook() {
		heard := slices.Contains(events, sqs.Event{Kind: sqs.MessagesAvailable, Queue: key(modelQueues[i])})
		if (after.available > before[i].available || after.next < before[i].next) && !heard {
			return fmt.Sprintf("no event for queue %s: %+v became %+v", modelQueues[i], before[i], after)
		}
	}
	return ""
}

func (g *generator) compareCensus(c sqs.Command) string {
	var want []sqs.QueueCensus
	for _, q := range g.model.queues {
		want = append(want, q.census(g.at.Now))
	}
	got := g.state.Census(g.at.Now)
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("census after %T%+v:\n got %+v\nwant %+v", c, c, got, want)
	}
	for _, q := range want {
		available := min(7, q.Visible)
		if q.InFlight >= g.at.Rules.InFlightLimit {
			available = 0
		}
		if got := g.state.Available(q.Queue, g.at.Now, 7); got != available {
			return fmt.Sprintf("available in %s: got %d, want %d", q.Queue.Name, got, available)
		}
	}
	return g.compareNext()
}

// compareNext compares NextAvailable. It may be too early for a message that
// has expired and was not dropped yet.
func (g *generator) compareNext() string {
	due, _ := g.state.NextPulse()
	for _, q := range g.model.queues {
		want := sqs.Time(0)
		for _, x := range q.messages {
			if x.visibleAt > g.at.Now && (want == 0 || x.visibleAt < want) {
				want = x.visibleAt
			}
		}
		got, ok := g.state.NextAvailable(key(q.name), g.at.Now)
		if ok && got <= g.at.Now || want != 0 && (!ok || got > want) || got != want && due > g.at.Now {
			return fmt.Sprintf("next available in %s: got %d %t, want %d", q.name, got, ok, want)
		}
	}
	return ""
}

// compareBodies checks that exactly the bodies of messages are alive, once
// everything that expired was dropped.
func (g *generator) compareBodies() string {
	g.state.Pulse(g.at)
	g.twin.Pulse(g.at)
	g.model.expire(g.at.Now)
	var want, got []uint64
	for _, q := range g.model.queues {
		for _, x := range q.messages {
			want = append(want, x.body)
		}
	}
	slices.Sort(want)
	for first, count := range g.state.Freeze().Bodies() {
		for n := first; n < first+count; n++ {
			got = append(got, n)
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("live bodies: got %v, want %v", got, want)
	}
	return ""
}
