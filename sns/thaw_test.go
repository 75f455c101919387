package sns_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast.internal/sns"
)

// someState is a state with something of everything in it.
func someState(t *testing.T) *sns.State {
	t.Helper()
	s, outlet := sns.New(), &queues{}
	s.SetSteps(7)
	at := sns.Moment{Now: start, Rules: sns.Rules{DedupWindow: time.Minute}, Outlet: outlet}
	do := func(c sns.Command) {
		t.Helper()
		if _, _, err := s.Apply(at, c); err != nil {
			t.Fatalf("%T: %v", c, err)
		}
	}
	for _, name := range []string{"a", "b.fifo"} {
		list := []sns.Attribute{{Name: sns.DisplayName, Value: "x"}}
		if sns.IsFIFO(name) {
			list = append(list, sns.Attribute{Name: sns.FifoTopic, Value: "true"})
		}
		do(sns.CreateTopic{Topic: key(name), Attributes: list, Tags: []sns.Tag{{Key: "k", Value: "v"}}, DataProtectionPolicy: "{}"})
		for i := range 5 {
			c := sns.Subscribe{Topic: key(name), Protocol: sns.SQS, Endpoint: fmt.Sprint("arn:aws:sqs:us-east-1:000000000000:q", i), Principal: "p", Owner: account}
			c.Subscription = sns.SubscriptionID{name[0], byte(i)}
			if i == 3 {
				c.Attributes = []sns.Attribute{
					{Name: sns.FilterPolicyAttribute, Value: `{"k":["v"]}`},
					{Name: sns.RawMessageDelivery, Value: "true"},
					{Name: sns.RedrivePolicy, Value: `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:d` + name[1:] + `"}`},
				}
			}
			do(c)
		}
	}
	do(sns.Subscribe{Topic: key("a"), Protocol: sns.HTTP, Endpoint: "http://h/", Subscription: sns.SubscriptionID{9}, Token: sns.TokenHash{7}})
	do(sns.SetSMSAttributes{Account: account, Attributes: []sns.Attribute{{Name: "DefaultSMSType", Value: "Promotional"}}})
	g := &topicPlayer{Rand: rand.New(rand.NewPCG(1, 1))}
	for range 4 {
		do(g.publish("a"))
		do(g.publish("b.fifo"))
	}
	if s.Totals().Waiting == 0 {
		t.Fatal("nothing waits")
	}
	return s
}

// TestThawRefuses cuts an encoded state off everywhere, and changes single bytes of
// it: what comes of that is an error, or a state that can be encoded again.
func TestThawRefuses(t *testing.T) {
	encoded := someState(t).Freeze().AppendTo(nil)
	for n := range encoded {
		if _, err := sns.Thaw(encoded[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are a state", n, len(encoded))
		}
	}
	if _, err := sns.Thaw(append(bytes.Clone(encoded), 0)); err == nil {
		t.Error("a byte too many is a state")
	}
	refused := 0
	for n := range encoded {
		change := []byte{1, 0x80, 0xff}[n%3]
		changed := bytes.Clone(encoded)
		changed[n] ^= change
		s, err := sns.Thaw(changed)
		if err != nil {
			refused++
			continue
		}
		again := s.Freeze().AppendTo(nil)
		if _, err := sns.Thaw(again); err != nil {
			t.Fatalf("byte %d changed by %x: the state cannot be thawed again: %v", n, change, err)
		}
		s.Pulse(sns.Moment{Now: start.Add(100 * time.Hour), Rules: sns.Rules{DedupWindow: time.Minute}, Outlet: &queues{}})
		s.Damage(key("a"))
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestDamage: a damaged topic is inspected and deleted, and nothing else; the
// others go on.
func TestDamage(t *testing.T) {
	s := someState(t)
	s.Damage(key("a"))
	thawed, err := sns.Thaw(s.Freeze().AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	at := sns.Moment{Now: start, Rules: sns.Rules{DedupWindow: time.Minute}, Outlet: &queues{}}
	if c := thawed.Census()[0]; !c.Damaged || c.Confirmed != 5 || c.Pending != 1 || c.Waiting != 0 {
		t.Errorf("got %+v", c)
	}
	if _, _, err := thawed.Apply(at, sns.Unsubscribe{Topic: key("a"), Subscription: sns.SubscriptionID{'a', 1}, Signed: true}); err == nil {
		t.Error("a damaged topic was changed")
	}
	for range 10 {
		thawed.Pulse(at)
	}
	if thawed.Totals().Waiting != 0 {
		t.Error("the other topic does not go on")
	}
	if _, _, err := thawed.Apply(at, sns.DeleteTopic{Topic: key("a")}); err != nil {
		t.Error(err)
	}
	if _, _, err := thawed.Apply(at, sns.CreateTopic{Topic: key("a")}); err != nil {
		t.Error(err)
	}
}

// TestMemory holds what a subscription takes.
func TestMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	const topics, each = 10, 10_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := sns.New()
	at := sns.Moment{Now: start, Outlet: &queues{}}
	for i := range topics {
		topic := key(fmt.Sprint("topic-", i))
		_, _, _ = s.Apply(at, sns.CreateTopic{Topic: topic})
		for j := range each {
			c := sns.Subscribe{
				Topic: topic, Protocol: sns.SQS, Endpoint: fmt.Sprintf("arn:aws:sqs:us-east-1:000000000000:a-queue-%d", j),
				Principal: strings.Clone("arn:aws:iam::000000000000:root"), Owner: strings.Clone(account),
			}
			c.Subscription[0], c.Subscription[1], c.Subscription[2] = byte(i), byte(j), byte(j>>8)
			_, _, _ = s.Apply(at, c)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	taken := float64(after.HeapAlloc-before.HeapAlloc) / (topics * each)
	t.Logf("%.0f bytes for each subscription", taken)
	if taken > 300 {
		t.Errorf("got %.0f bytes for each subscription, want at most 300", taken)
	}
	shortest := time.Hour // of some tries, since other processes run, too
	for range 10 {
		begin := time.Now()
		s.Freeze()
		shortest = min(shortest, time.Since(begin))
	}
	t.Logf("freezing %d subscriptions takes %v", topics*each, shortest)
	if shortest > 5*time.Millisecond {
		t.Errorf("freezing %d subscriptions took %v", topics*each, shortest)
	}
	runtime.KeepAlive(s)
}
