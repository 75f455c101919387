package sns_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"holdfast.internal/sns"
)

const (
	account = "000000000000"
	region  = "us-east-1"
	start   = sns.Time(1_600_000_000_000)
)

func key(name string) sns.TopicKey { return sns.TopicKey{Account: account, Name: name} }

// queues is an Outlet that keeps what it is given. Queues whose names are in gone
// do not exist.
type queues struct {
	records [][]byte
	copies  []sns.Copy
	gone    map[string]bool
}

func (q *queues) Store(record []byte) uint64 {
	q.records = append(q.records, record)
	return uint64(len(q.records))
}

func (q *queues) Deliver(c *sns.Copy) (sns.Outcome, int) {
	if q.gone[c.Queue.Name] {
		return sns.QueueGone, 0
	}
	q.copies = append(q.copies, *c)
	return sns.Delivered, 0
}

// modelPublish is a publish as the model sees it: who is still to get it.
type modelPublish struct {
	topic  string
	text   string
	number int   // of the publish, from 0
	last   int   // the newest subscription
	served []int // subscriptions, in the order in which they got it
}

type modelSubscription struct {
	topic  string
	owner  string
	number int // rises with every subscription
	id     sns.SubscriptionID
	filter string // the only text that it lets through; empty: all
	since  int    // publishes that were stored before the filter became what it is
}

// topicPlayer plays random commands to a State, to one that was thawed from it, and
// to a model that has all subscriptions in one list.
type topicPlayer struct {
	*rand.Rand
	state, twin   *sns.State
	outlet, other *queues
	now           sns.Time
	entry         uint64
	number        int
	known         []modelSubscription // in the order of their numbers
	publishes     []*modelPublish
}

var (
	modelTopics = []string{"a", "b", "c.fifo"}
	modelOwners = []string{account, stranger}
)

// TestModel checks that every publish reaches exactly the subscriptions that it
// should, in their order, whatever happens between the steps of it.
func TestModel(t *testing.T) {
	runs := 40
	if testing.Short() {
		runs = 15
	}
	for seed := range uint64(runs) {
		g := &topicPlayer{
			Rand: rand.New(rand.NewPCG(seed, 0)), state: sns.New(), twin: sns.New(), outlet: &queues{}, other: &queues{}, now: start,
		}
		g.state.SetSteps(7)
		g.twin.SetSteps(7)
		for i := range 2000 {
			if problem := g.step(t); problem != "" {
				t.Fatalf("command %d of seed %d: %s", i, seed, problem)
			}
		}
	}
}

func (g *topicPlayer) step(t *testing.T) string {
	t.Helper()
	if g.IntN(3) == 0 || g.entry == 0 { // else it is one more command of the entry
		g.entry++
		g.now += sns.Time(g.IntN(3000))
	}
	if g.IntN(100) == 0 {
		if problem := g.changeTwin(t); problem != "" {
			return problem
		}
	}
	c := g.command()
	if c == nil {
		g.state.Pulse(g.moment(g.outlet))
		g.twin.Pulse(g.moment(g.other))
		return g.compare()
	}
	result, _, err := g.state.Apply(g.moment(g.outlet), c)
	again, _, errAgain := g.twin.Apply(g.moment(g.other), c)
	if !reflect.DeepEqual(result, again) || !reflect.DeepEqual(err, errAgain) {
		return fmt.Sprintf("%T: the thawed twin answers %+v, %v, not %+v, %v", c, again, errAgain, result, err)
	}
	if err != nil {
		return g.compare()
	}
	g.model(c, result)
	if problem := g.compareResult(c, result); problem != "" {
		return problem
	}
	return g.compare()
}

// compareResult checks that a publish without a record is one that nobody gets.
func (g *topicPlayer) compareResult(c sns.Command, result sns.Result) string {
	r, ok := result.(sns.PublishBatchResult)
	if !ok || sns.IsFIFO(c.Target().Name) {
		return ""
	}
	for i := range r.Entries {
		wanted := func(s modelSubscription) bool { return s.topic == c.Target().Name && s.filter == "" }
		if r.Entries[i].Body == 0 && slices.ContainsFunc(g.known, wanted) {
			return fmt.Sprintf("entry %d of %+v is kept nowhere", i, c)
		}
	}
	return ""
}

func (g *topicPlayer) moment(o *queues) sns.Moment {
	return sns.Moment{Index: g.entry, Now: g.now, Rules: sns.Rules{DedupWindow: time.Minute}, Outlet: o}
}

// changeTwin thaws the state, and compares it with the twin of before.
func (g *topicPlayer) changeTwin(t *testing.T) string {
	t.Helper()
	g.entry++
	frozen := g.state.Freeze()
	encoded := frozen.AppendTo(nil)
	if other := g.twin.Freeze().AppendTo(nil); !bytes.Equal(encoded, other) {
		return "the twin has become another"
	}
	thawed, err := sns.Thaw(encoded)
	if err != nil {
		return err.Error()
	}
	thawed.SetSteps(7)
	if again := thawed.Freeze().AppendTo(nil); !bytes.Equal(encoded, again) {
		return "a thawed state is encoded in another way"
	}
	g.state, g.twin = thawed, g.state
	g.outlet, g.other = g.other, g.outlet
	return ""
}

func (g *topicPlayer) command() sns.Command {
	topic := modelTopics[g.IntN(len(modelTopics))]
	var mine []modelSubscription
	for _, s := range g.known {
		if s.topic == topic {
			mine = append(mine, s)
		}
	}
	switch n := g.IntN(100); {
	case n < 4:
		var attributes []sns.Attribute
		if sns.IsFIFO(topic) {
			attributes = []sns.Attribute{{Name: sns.FifoTopic, Value: "true"}}
		}
		return sns.CreateTopic{Topic: key(topic), Attributes: attributes}
	case n < 5:
		return sns.DeleteTopic{Topic: key(topic)}
	case n < 35:
		g.number++
		c := sns.Subscribe{
			Topic: key(topic), Protocol: sns.SQS, Endpoint: fmt.Sprintf("arn:aws:sqs:us-east-1:000000000000:q%d", g.IntN(60)),
			Owner: modelOwners[g.IntN(len(modelOwners))],
		}
		copy(c.Subscription[:], fmt.Sprintf("%016d", g.number))
		if g.IntN(3) == 0 {
			c.Attributes = []sns.Attribute{{Name: sns.FilterPolicyAttribute, Value: fmt.Sprintf(`{"k":["%d"]}`, g.IntN(2))}}
		}
		return c
	case n < 42 && len(mine) > 0:
		return sns.Unsubscribe{Topic: key(topic), Subscription: mine[g.IntN(len(mine))].id, Signed: true}
	case n < 46 && len(mine) > 0:
		value := ""
		if g.IntN(2) == 0 {
			value = fmt.Sprintf(`{"k":["%d"]}`, g.IntN(2))
		}
		return sns.SetSubscriptionAttributes{
			Topic: key(topic), Subscription: mine[g.IntN(len(mine))].id,
			Attribute: sns.Attribute{Name: sns.FilterPolicyAttribute, Value: value},
		}
	case n < 70:
		return g.publish(topic)
	case n < 72:
		return sns.ListSubscriptionsByTopic{Topic: key(topic), Limit: 100}
	}
	return nil
}

func (g *topicPlayer) publish(topic string) sns.Command {
	c := sns.PublishBatch{Topic: key(topic)}
	for range 1 + g.IntN(3) {
		value := fmt.Sprint(g.IntN(2))
		m := sns.Message{
			TopicARN: sns.TopicARN(region, key(topic)), Text: []byte(value),
			Attributes: []sns.MessageAttribute{{Name: "k", DataType: "String", Value: []byte(value)}},
		}
		e := sns.PublishEntry{Size: 10}
		e.MessageID[0] = byte(g.IntN(256))
		if sns.IsFIFO(topic) {
			m.GroupID, m.DeduplicationID = "g", fmt.Sprint(g.IntN(40))
			e.GroupID, e.DeduplicationID = m.GroupID, m.DeduplicationID
		}
		e.Content = sns.AppendMessage(nil, &m)
		c.Entries = append(c.Entries, e)
	}
	return c
}

// model does what a command that was not refused does.
func (g *topicPlayer) model(c sns.Command, result sns.Result) {
	drop := func(gone func(s modelSubscription) bool) { g.known = slices.DeleteFunc(g.known, gone) }
	switch c := c.(type) {
	case sns.DeleteTopic:
		drop(func(s modelSubscription) bool { return s.topic == c.Topic.Name })
		for _, p := range g.publishes {
			if p.topic == c.Topic.Name {
				p.last = -1
			}
		}
	case sns.Subscribe:
		if result.(sns.SubscribeResult).Subscription != c.Subscription {
			return
		}
		s := modelSubscription{topic: c.Topic.Name, owner: c.Owner, number: g.number, id: c.Subscription, since: len(g.outlet.records)}
		if len(c.Attributes) > 0 {
			s.filter = c.Attributes[0].Value[7:8]
		}
		g.known = append(g.known, s)
	case sns.Unsubscribe:
		drop(func(s modelSubscription) bool { return s.id == c.Subscription })
	case sns.SetSubscriptionAttributes:
		for i := range g.known {
			if g.known[i].id == c.Subscription {
				g.known[i].filter, g.known[i].since = "", len(g.outlet.records)
				if c.Attribute.Value != "" {
					g.known[i].filter = c.Attribute.Value[7:8]
				}
			}
		}
	}
}

// compare checks what has come to queues since the last command.
func (g *topicPlayer) compare() string {
	if !reflect.DeepEqual(g.outlet.copies, g.other.copies) || len(g.outlet.records) != len(g.other.records) {
		return fmt.Sprintf("the twin delivers %+v, not %+v", g.other.copies, g.outlet.copies)
	}
	for len(g.publishes) < len(g.outlet.records) {
		stored, err := sns.ParseStored(g.outlet.records[len(g.publishes)])
		if err != nil {
			return err.Error()
		}
		name := stored.Message.TopicARN[len(sns.TopicARN(region, key(""))):]
		g.publishes = append(g.publishes, &modelPublish{topic: name, text: string(stored.Message.Text), number: len(g.publishes), last: g.number})
	}
	for _, c := range g.outlet.copies {
		p := g.publishes[c.Body-1]
		i := slices.IndexFunc(g.known, func(s modelSubscription) bool { return s.id == c.Subscription })
		switch {
		case i < 0:
			return fmt.Sprintf("a copy for a subscription that is gone: %+v", c)
		case g.known[i].topic != p.topic || g.known[i].number > p.last:
			return fmt.Sprintf("a copy for a subscription that is none of %+v: %+v", p, g.known[i])
		case g.known[i].filter != "" && g.known[i].filter != p.text:
			return fmt.Sprintf("a copy of %q for a subscription of %q", p.text, g.known[i].filter)
		case len(p.served) > 0 && p.served[len(p.served)-1] >= g.known[i].number:
			return fmt.Sprintf("a copy out of turn: %+v, after %v", g.known[i], p.served)
		}
		p.served = append(p.served, g.known[i].number)
	}
	g.outlet.copies, g.other.copies = nil, nil
	return g.compareEnd()
}

// compareEnd checks, when nothing waits any more, that nobody was left out who
// could not have been.
func (g *topicPlayer) compareEnd() string {
	if g.state.Totals().Waiting > 0 {
		return ""
	}
	for _, p := range g.publishes {
		if p.last < 0 {
			continue
		}
		for _, s := range g.known {
			_, served := slices.BinarySearch(p.served, s.number)
			if s.topic == p.topic && s.number <= p.last && s.filter == "" && !served && p.number >= s.since {
				return fmt.Sprintf("%+v did not reach %+v", p, s)
			}
		}
		p.last = -1 // it is done
	}
	counts := map[string]int{}
	for _, s := range g.known {
		counts[s.topic]++
	}
	for _, c := range g.state.Census() {
		if c.Confirmed != counts[c.Topic.Name] {
			return fmt.Sprintf("%s has %d subscriptions, want %d", c.Topic.Name, c.Confirmed, counts[c.Topic.Name])
		}
	}
	return g.compareOwners()
}

// compareOwners checks the lists of those who have subscribed.
func (g *topicPlayer) compareOwners() string {
	for _, owner := range modelOwners {
		want := 0
		for _, s := range g.known {
			if s.owner == owner {
				want++
			}
		}
		got := 0
		for c := (sns.ListSubscriptions{Account: owner, Limit: 5}); ; {
			result, _, _ := g.state.Apply(g.moment(g.outlet), c)
			page := result.(sns.ListSubscriptionsResult)
			got += len(page.Subscriptions)
			if !page.More {
				break
			}
			c.After = sns.PlaceOf(page.Subscriptions[len(page.Subscriptions)-1])
		}
		if got != want {
			return fmt.Sprintf("%s has %d subscriptions, want %d", owner, got, want)
		}
	}
	return ""
}
