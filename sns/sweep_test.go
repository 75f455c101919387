package sns_test

import (
	"bytes"
	"fmt"
	"testing"

	"holdfast.internal/sns"
)

// TestDeleteLargeTopic deletes a topic of 20,000 subscriptions of as many owners, all
// of which wait for their confirmation. It is gone at once, and a topic of the same
// name has nothing of it; but no command and no Pulse goes through all of them.
func TestDeleteLargeTopic(t *testing.T) {
	const subscriptions = 20_000
	s, at := sns.New(), sns.Moment{Now: start, Outlet: &queues{}}
	do := func(c sns.Command) sns.Result {
		t.Helper()
		result, _, err := s.Apply(at, c)
		if err != nil {
			t.Fatalf("%T: %v", c, err)
		}
		return result
	}
	owner := func(i int) string { return fmt.Sprintf("%012d", i) }
	subscribe := func(i int) sns.Subscribe {
		id := sns.SubscriptionID{byte(i), byte(i >> 8), byte(i >> 16)}
		return sns.Subscribe{
			Topic: key("t"), Subscription: id, Protocol: sns.HTTPS, Endpoint: fmt.Sprintf("https://h/%d", i), Owner: owner(i),
			Token: sns.TokenHash{byte(i), byte(i >> 8), byte(i >> 16)},
		}
	}
	do(sns.CreateTopic{Topic: key("t")})
	for i := range subscriptions {
		do(subscribe(i))
	}
	do(sns.DeleteTopic{Topic: key("t")})
	do(sns.CreateTopic{Topic: key("t")})
	left, _ := s.Remains()
	if least := 2*subscriptions - 1000; left < least {
		t.Fatalf("%d things are left, so the command went through more than %d", left, 2*subscriptions-least)
	}
	fresh := subscribe(subscriptions)
	fresh.Owner = owner(0) // who has had a subscription of the old topic
	do(fresh)
	check := func() {
		t.Helper()
		for i, want := range map[int]int{0: 1, 1: 0, subscriptions / 2: 0} {
			if got := len(do(sns.ListSubscriptions{Account: owner(i), Limit: 10}).(sns.ListSubscriptionsResult).Subscriptions); got != want {
				t.Errorf("owner %d has %d subscriptions, want %d", i, got, want)
			}
			_, _, err := s.Apply(at, sns.ConfirmSubscription{Topic: key("t"), Token: subscribe(i).Token})
			if err == nil || err.Error() != "InvalidParameter: Invalid parameter: Token" {
				t.Errorf("token %d of the topic that was deleted: got %v", i, err)
			}
		}
	}
	check()
	thawed, err := sns.Thaw(s.Freeze().AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	for left, _ = s.Remains(); ; {
		next, due := s.NextPulse()
		if !due || next > at.Now {
			break
		}
		s.Pulse(at)
		now, _ := s.Remains()
		if left-now > sns.MaxSteps+100 {
			t.Fatalf("a Pulse went through %d things", left-now)
		}
		left = now
	}
	check()
	if left, tokens := s.Remains(); left != 0 || tokens != 1 {
		t.Errorf("%d things and %d tokens are left, want 0 and 1", left, tokens)
	}
	thawed.Pulse(at)
	if !bytes.Equal(thawed.Freeze().AppendTo(nil), s.Freeze().AppendTo(nil)) {
		t.Error("a state that was thawed meanwhile has become another")
	}
}

// TestDeleteSmallTopic: of a topic that few have subscribed to nothing is left.
func TestDeleteSmallTopic(t *testing.T) {
	s, at := sns.New(), sns.Moment{Now: start, Outlet: &queues{}}
	for i := range 7 {
		_, _, _ = s.Apply(at, sns.CreateTopic{Topic: key("t")})
		_, _, _ = s.Apply(at, sns.Subscribe{
			Topic: key("t"), Subscription: sns.SubscriptionID{byte(i)}, Protocol: sns.HTTPS, Endpoint: fmt.Sprint("https://h/", i),
			Owner: fmt.Sprintf("%012d", i), Token: sns.TokenHash{byte(i)},
		})
	}
	_, _, _ = s.Apply(at, sns.DeleteTopic{Topic: key("t")})
	if left, tokens := s.Remains(); left != 0 || tokens != 0 {
		t.Errorf("%d things and %d tokens are left", left, tokens)
	}
	if next, due := s.NextPulse(); due {
		t.Errorf("a Pulse is due at %d", next)
	}
}

// TestTextsAreBounded has 10,000 accounts ask for a subscription that they do not get:
// their names are not kept for ever.
func TestTextsAreBounded(t *testing.T) {
	s, at := sns.New(), sns.Moment{Now: start, Outlet: &queues{}}
	if _, _, err := s.Apply(at, sns.CreateTopic{Topic: key("t")}); err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		owner := fmt.Sprintf("%012d", i)
		_, _, err := s.Apply(at, sns.Subscribe{
			Topic: key("t"), Protocol: sns.SQS, Endpoint: "arn:aws:sqs:us-east-1:" + owner + ":q", Owner: owner, Principal: owner + ":root",
			Attributes: []sns.Attribute{{Name: sns.RawMessageDelivery, Value: "maybe"}},
		})
		if err == nil {
			t.Fatal("an attribute that cannot be is accepted")
		}
	}
	if n := s.Texts(); n > 4096 {
		t.Errorf("%d texts are kept, want at most 4096", n)
	}
}
