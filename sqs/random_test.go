package sqs_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

var (
	modelCommands = flag.Int("model.commands", modelDefault(), "commands that TestModel plays")
	modelSeed     = flag.Uint64("model.seed", 0, "seed of the only run of TestModel; 0 for many")
	modelNew      = flag.Bool("model.new", os.Getenv("HOLDFAST_LONG") != "", "new seeds for TestModel, not always the same")
)

// modelDefault is ten times as many commands in the long form.
func modelDefault() int {
	if os.Getenv("HOLDFAST_LONG") != "" {
		return 10 * defaultModelCommands
	}
	return defaultModelCommands
}

// TestModel plays random commands to a State and to a model that is too simple
// to be wrong, and compares every answer. A run ends after 5,000 commands, so
// that a failing seed is soon played again. The seeds are the same each time, so
// that a change is judged by itself; the long form looks for new ones.
func TestModel(t *testing.T) {
	const run = 5000
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the heap is small, and a collection costs more than all in it
	if *modelSeed != 0 {
		playModel(t, *modelSeed, *modelCommands)
		return
	}
	commands := *modelCommands
	if testing.Short() {
		commands = min(commands, 30_000)
	}
	for done := 0; done < commands && !t.Failed(); done += run {
		seed := uint64(1 + done/run)
		if *modelNew {
			seed = rand.Uint64()
		}
		playModel(t, seed, run)
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

// generator makes up commands and compares the answers.
type generator struct {
	*rand.Rand
	model    *model
	state    *sqs.State
	twin     *sqs.State // was thawed from the state some commands ago, and must stay equal
	at       sqs.Moment
	receipts [modelQueueCount][]sqs.Receipt // that were given out, by queue
	steps    int
}

func newGenerator(seed uint64) *generator {
	return &generator{
		Rand:  rand.New(rand.NewPCG(seed, 0)),
		model: &model{reserved: map[string]sqs.Time{}},
		state: sqs.New(),
		twin:  sqs.New(),
		at:    sqs.Moment{Now: scriptStart, NextBody: 1, Rules: sqs.Rules{InFlightLimit: 50, PurgeWait: time.Minute, DedupWindow: 5 * time.Minute}},
	}
}

const (
	modelQueueCount = 7
	// twinEvery is after how many commands there is another snapshot, censusEvery
	// after how many all queues are looked at.
	twinEvery, censusEvery = 400, 4
)

var modelQueues = [modelQueueCount]string{"a", "b", "c", "d", "e.fifo", "f.fifo", "g.fifo"}

func (g *generator) step(t *testing.T) string {
	t.Helper()
	g.steps++
	if problem := g.passTime(); problem != "" {
		return problem
	}
	if g.steps%twinEvery == 0 {
		if problem := g.changeTwin(t); problem != "" {
			return problem
		}
	}
	if g.IntN(50) == 0 {
		if problem := g.pulse(); problem != "" {
			return problem
		}
	}
	if g.IntN(15) == 0 {
		if problem := g.sendCopy(); problem != "" {
			return problem
		}
	}
	c := g.command()
	if problem := g.compareRepeats(c); problem != "" {
		return problem
	}
	before := g.outlook()
	result, events, err := g.state.Apply(g.at, c)
	if other, _, _ := g.twin.Apply(g.at, c); !sameResult(other, result) {
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
	if g.steps%censusEvery > 0 {
		return ""
	}
	return g.compareCensus(c)
}

// compareRepeats asks whether a receive will repeat another one, before it does.
func (g *generator) compareRepeats(c sqs.Command) string {
	receive, ok := c.(sqs.ReceiveMessage)
	if !ok {
		return ""
	}
	g.model.expire(g.at.Now)
	q := g.model.queue(receive.Queue.Name)
	want := q != nil && q.repeated(g.at.Now, receive) != nil
	if got := g.state.Repeats(receive, g.at.Now); got != want {
		return fmt.Sprintf("%+v repeats another: got %t, want %t", c, got, want)
	}
	return ""
}

func compareAnswers(c sqs.Command, got, want sqs.Result, err *sqs.Error, refusal string) string {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != refusal {
		return fmt.Sprintf("%T%+v: got refusal %q, want %q", c, c, text, refusal)
	}
	if !sameResult(got, want) {
		return fmt.Sprintf("%T%+v:\n got %+v\nwant %+v", c, c, got, want)
	}
	return ""
}

// sameResult is reflect.DeepEqual, but quicker for what there is most of.
func sameResult(a, b sqs.Result) bool {
	if received, ok := a.(sqs.ReceiveMessageResult); ok {
		other, ok := b.(sqs.ReceiveMessageResult)
		return ok && slices.Equal(received.Messages, other.Messages)
	}
	return reflect.DeepEqual(a, b)
}

// passTime lets nothing, a moment, or days go by.
func (g *generator) passTime() string {
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
	if g.IntN(200) == 0 {
		g.at.Rules.InFlightLimit = 1 + g.IntN(60)
		g.at.Rules.DeleteWait = []time.Duration{0, 10 * time.Second, time.Minute}[g.IntN(3)]
		return g.pulse()
	}
	return ""
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
	if n := g.IntN(4); n < 2 {
		i = n * 4
	}
	q := key(modelQueues[i])
	switch n := g.IntN(1000); {
	case g.model.queue(q.Name) == nil, n < 3:
		if sqs.IsFIFO(q.Name) {
			return sqs.CreateQueue{Queue: q, Attributes: []sqs.Attribute{{Name: sqs.FifoQueue, Value: "true"}}}
		}
		return sqs.CreateQueue{Queue: q}
	case n < 5:
		return sqs.DeleteQueue{Queue: q}
	case n < 8:
		return sqs.PurgeQueue{Queue: q}
	case n < 20:
		return sqs.SetQueueAttributes{Queue: q, Attributes: g.attributes(q)}
	case n < 30:
		return g.taskOf(q)
	case n < 35:
		return sqs.ListDeadLetterSourceQueues{Queue: q, Limit: 10}
	case n < 350 && len(g.model.queue(q.Name).messages) < 190:
		if sqs.IsFIFO(q.Name) {
			return g.sendFIFO(q)
		}
		return g.send(q)
	case n < 700:
		c := sqs.ReceiveMessage{Queue: q, MaxMessages: 1 + g.IntN(10), VisibilityTimeout: sqs.QueueDefault, Short: g.IntN(2) == 0}
		if g.IntN(2) == 0 {
			c.VisibilityTimeout = g.someSeconds(60)
		}
		g.attempt(&c)
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
		if g.IntN(3) == 0 || q.Name == "b" {
			e.GroupID = strings.Repeat("g", 1+g.IntN(5)*g.IntN(2))
		}
		c.Entries = append(c.Entries, e)
	}
	return c
}

func (g *generator) attributes(q sqs.QueueKey) []sqs.Attribute {
	pick := func(choices ...string) string { return choices[g.IntN(len(choices))] }
	if sqs.IsFIFO(q.Name) && g.IntN(4) == 0 {
		return g.attributesFIFO()
	}
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
		target := pick(modelQueues[:]...)
		if g.IntN(10) > 0 && sqs.IsFIFO(target) != sqs.IsFIFO(q.Name) {
			target = q.Name
		}
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
	i := slices.Index(modelQueues[:], c.Target().Name)
	if r, ok := result.(sqs.ReceiveMessageResult); ok {
		for _, m := range r.Messages {
			g.receipts[i] = append(g.receipts[i], m.Receipt)
		}
		g.receipts[i] = g.receipts[i][max(0, len(g.receipts[i])-300):]
	}
	if r, ok := result.(sqs.SendMessageBatchResult); ok {
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

func (g *generator) outlook() (all [modelQueueCount]outlook) {
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
func (g *generator) compareEvents(before [modelQueueCount]outlook, events []sqs.Event) string {
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
		want = append(want, g.model.census(q, g.at.Now))
	}
	got := g.state.Census(g.at.Now)
	due, ever := g.state.NextPulse()
	late := ever && due <= g.at.Now // what has expired was not dropped yet
	for i := range got {
		if late && i < len(want) {
			got[i].GroupsInFlight = want[i].GroupsInFlight
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("census after %T%+v:\n got %+v\nwant %+v", c, c, got, want)
	}
	for _, q := range want {
		available := min(7, q.Visible)
		if model := g.model.queue(q.Queue.Name); model.fifo {
			if late {
				continue
			}
			available = min(7, model.availableGroups(g.at.Now))
		}
		if q.InFlight >= g.at.Rules.InFlightLimit {
			available = 0
		}
		if got := g.state.Available(q.Queue, g.at.Now, 7); got != available {
			return fmt.Sprintf("available in %s: got %d, want %d", q.Queue.Name, got, available)
		}
	}
	if problem := g.comparePeek(); problem != "" {
		return problem
	}
	return g.compareNext()
}

// comparePeek looks at one page of one queue.
func (g *generator) comparePeek() string {
	if len(g.model.queues) == 0 {
		return ""
	}
	q := g.model.queues[g.IntN(len(g.model.queues))]
	state, after, limit := sqs.MessageState(g.IntN(4)), g.Uint64N(q.sequence+1), 1+g.IntN(20)
	var want []sqs.Peeked
	for _, x := range q.messages {
		found := q.peeked(x, g.at.Now)
		if x.sequence > after && len(want) < limit && (state == sqs.AnyState || state == found.State) {
			want = append(want, found)
		}
	}
	got, ok := g.state.Peek(key(q.name), g.at.Now, state, after, limit)
	if !ok || !slices.Equal(got.Messages, want) {
		return fmt.Sprintf("peek of %s, state %d, after %d, limit %d:\n got %+v\nwant %+v", q.name, state, after, limit, got.Messages, want)
	}
	if full := len(want) == limit; full && got.Next != want[limit-1].Sequence || !full && got.More {
		return fmt.Sprintf("peek of %s: got next %d, more %t after %d of %d", q.name, got.Next, got.More, len(want), limit)
	}
	return ""
}

// compareNext compares NextAvailable. It may be too early for a message that
// has expired and was not dropped yet.
func (g *generator) compareNext() string {
	due, _ := g.state.NextPulse()
	for _, q := range g.model.queues {
		if q.fifo && due <= g.at.Now {
			continue
		}
		want := sqs.Time(0)
		full := q.hiddenAt(g.at.Now) >= g.at.Rules.InFlightLimit
		for _, x := range q.messages { // of a full FIFO queue, when there is room
			if q.fifo && full && x.hidden && x.visibleAt > g.at.Now && (want == 0 || x.visibleAt < want) {
				want = x.visibleAt
			}
		}
		for _, x := range q.heads() {
			if full {
				break
			}
			if at := q.availableAt(x); at > g.at.Now && (want == 0 || at < want) {
				want = at
			}
		}
		for _, x := range q.messages {
			if !q.fifo && x.visibleAt > g.at.Now && (want == 0 || x.visibleAt < want) {
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
	if problem := g.pulse(); problem != "" {
		return problem
	}
	var want, got []uint64
	for _, q := range g.model.queues {
		for _, x := range q.messages {
			want = append(want, x.body)
		}
	}
	messages := uint64(len(want))
	slices.Sort(want)
	want = slices.Compact(want) // copies share one
	for first, count := range g.state.Freeze().Bodies() {
		for n := first; n < first+count; n++ {
			got = append(got, n)
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("live bodies: got %v, want %v", got, want)
	}
	if n := g.state.Messages(); n != messages {
		return fmt.Sprintf("messages: counted %d, want %d", n, messages)
	}
	return ""
}
