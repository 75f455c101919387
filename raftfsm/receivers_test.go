package raftfsm

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"holdfast.internal/sns"
)

// TestEntryBoundsFanOut: however many publishes an entry has, it makes 1,000 copies
// at most. The others follow with Pulses, which find steps in every entry, and each
// subscription gets each publish once and in order.
func TestEntryBoundsFanOut(t *testing.T) {
	const receivers, publishes = 100, 30
	m := newTestMachine(t)
	for _, topic := range []string{"t", "other"} {
		m.must(sns.CreateTopic{Topic: testTopic(topic)})
		for i := range receivers {
			m.subscribe(i+1, topic, fmt.Sprint(topic, i), sns.Attribute{Name: sns.RawMessageDelivery, Value: "true"})
		}
	}
	delivered := func() (n uint64) {
		for _, c := range m.state.topics.Census() {
			n += c.Delivered
		}
		return n
	}
	apply := func(topic string, first, count int, pulse bool) (copies uint64) {
		t.Helper()
		entry := AppendEntryHeader(nil, m.now)
		for n := first; n < first+count; n++ {
			entry = AppendOperation(entry, Origin{}, publishCommand(t, topic, fmt.Sprint(n)))
		}
		if pulse {
			command, err := AppendCommand(nil, Pulse{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			entry = AppendOperation(entry, Origin{}, command)
		}
		before := delivered()
		m.index++
		for _, o := range m.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: entry}).(*Applied).Outcomes {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
		}
		m.restoreSelf()
		return delivered() - before
	}
	if n := apply("t", 0, publishes, false); n != sns.MaxSteps {
		t.Errorf("%d publishes to %d subscriptions: got %d copies in an entry, want %d", publishes, receivers, n, sns.MaxSteps)
	}
	// While something waits, others leave half of an entry to Pulses.
	if n := apply("other", 0, publishes, false); n != sns.MaxSteps/2 {
		t.Errorf("got %d copies, want %d", n, sns.MaxSteps/2)
	}
	if n := apply("other", publishes, 1, true); n != sns.PulseSteps {
		t.Errorf("with a pulse: got %d copies, want %d", n, sns.PulseSteps)
	}
	for entries := 1; m.state.topics.Totals().Waiting > 0; entries++ {
		if n := apply("", 0, 0, true); n > sns.PulseSteps || entries > 10 {
			t.Fatalf("pulse %d: got %d copies", entries, n)
		}
	}
	for topic, want := range map[string]int{"t": publishes, "other": publishes + 1} {
		for i := range receivers {
			got := m.contents(fmt.Sprint(topic, i))
			if len(got) != want {
				t.Fatalf("queue %d of %s: got %d messages, want %d", i, topic, len(got), want)
			}
			for n := range got {
				if string(got[n].Body) != fmt.Sprint(n) {
					t.Fatalf("queue %d of %s: message %d is %s", i, topic, n, got[n].Body)
				}
			}
		}
	}
}

// publishCommand is an encoded publish of one message.
func publishCommand(t *testing.T, topic, text string) []byte {
	t.Helper()
	message := sns.Message{TopicARN: topicARN(topic), Text: []byte(text)}
	c := sns.PublishBatch{Topic: testTopic(topic), Entries: []sns.PublishEntry{{Size: len(text)}}, Single: true}
	b, err := AppendCommand(nil, c, [][]byte{sns.AppendMessage(nil, &message)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFanOutSteps: what a publish will cost is known without the lock, and after a
// restore.
func TestFanOutSteps(t *testing.T) {
	m := newTestMachine(t)
	m.must(sns.CreateTopic{Topic: testTopic("t")})
	check := func(want int) {
		t.Helper()
		if got := m.FanOut(publishCommand(t, "t", "x")); got != want {
			t.Errorf("got %d steps, want %d", got, want)
		}
	}
	check(1)
	for i := range 5 {
		m.subscribe(i+1, "t", fmt.Sprint("q", i))
	}
	token := sns.TokenHash{1}
	m.must(sns.Subscribe{Topic: testTopic("t"), Subscription: subscriptionID(9), Protocol: sns.HTTP, Endpoint: "http://h", Token: token})
	check(5)
	m.must(sns.ConfirmSubscription{Topic: testTopic("any"), Token: token})
	check(6)
	m.restoreSelf()
	check(6)
	m.must(sns.Unsubscribe{Topic: testTopic("t"), Subscription: subscriptionID(1), Signed: true})
	check(5)
	batch, err := AppendCommand(nil, sns.PublishBatch{Topic: testTopic("t"), Entries: make([]sns.PublishEntry, 10)}, make([][]byte, 10))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.FanOut(batch); got != 50 {
		t.Errorf("a batch: got %d steps, want 50", got)
	}
	m.must(sns.DeleteTopic{Topic: testTopic("t")})
	check(1)
	pulse, err := AppendCommand(nil, Pulse{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]byte{pulse, nil, batch[:3]} {
		if got := m.FanOut(command); got != 0 {
			t.Errorf("%x: got %d steps, want 0", command, got)
		}
	}
}
