package sns_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.internal/sns"
)

const stranger = "111122223333"

// listAll asks for an account's subscriptions page by page, and returns their
// topics and endpoints.
func listAll(t *testing.T, s *sns.State, account string, limit int) (list []string) {
	t.Helper()
	for c := (sns.ListSubscriptions{Account: account, Limit: limit}); ; {
		result, _, err := s.Apply(sns.Moment{Now: start}, c)
		if err != nil {
			t.Fatal(err)
		}
		page := result.(sns.ListSubscriptionsResult)
		if len(page.Subscriptions) > limit || page.More && len(page.Subscriptions) < limit {
			t.Fatalf("got a page of %d, want %d", len(page.Subscriptions), limit)
		}
		for _, sub := range page.Subscriptions {
			if sub.Owner != account {
				t.Errorf("%s is asked for, and got %+v", account, sub)
			}
			list = append(list, sub.Topic.Account+" "+sub.Topic.Name+" "+sub.Endpoint)
		}
		if !page.More {
			return list
		}
		c.After = sns.PlaceOf(page.Subscriptions[limit-1])
	}
}

// TestListSubscriptionsByOwner: an account's list has what it has subscribed to,
// whosever topic that is.
func TestListSubscriptionsByOwner(t *testing.T) {
	s := sns.New()
	do := func(c sns.Command) {
		t.Helper()
		if _, _, err := s.Apply(sns.Moment{Now: start}, c); err != nil {
			t.Fatalf("%T: %v", c, err)
		}
	}
	theirs := sns.TopicKey{Account: stranger, Name: "b"}
	minted := 0
	subscribe := func(topic sns.TopicKey, owner, host string) sns.SubscriptionID {
		t.Helper()
		minted++
		c := sns.Subscribe{Topic: topic, Protocol: sns.HTTP, Endpoint: "http://" + host, Owner: owner, Token: sns.TokenHash{byte(minted)}}
		c.Subscription[0] = byte(minted)
		do(c)
		return c.Subscription
	}
	for _, topic := range []sns.TopicKey{key("a"), key("c"), theirs} {
		do(sns.CreateTopic{Topic: topic})
		for i := range 3 {
			subscribe(topic, account, fmt.Sprint("mine", i))
		}
		subscribe(topic, stranger, "foreign")
	}
	check := func(account string, want ...string) {
		t.Helper()
		for limit := 1; limit < 6; limit++ {
			if got := listAll(t, s, account, limit); !slices.Equal(got, want) {
				t.Errorf("%s, pages of %d: got %q, want %q", account, limit, got, want)
			}
		}
	}
	three := func(topic string) []string {
		return []string{topic + " http://mine0", topic + " http://mine1", topic + " http://mine2"}
	}
	own, other := account+" ", stranger+" b"
	check(account, slices.Concat(three(own+"a"), three(own+"c"), three(other))...)
	check(stranger, own+"a http://foreign", own+"c http://foreign", other+" http://foreign")
	check("999999999999")

	thawed, err := sns.Thaw(s.Freeze().AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	s = thawed
	check(stranger, own+"a http://foreign", own+"c http://foreign", other+" http://foreign")
	do(sns.DeleteTopic{Topic: key("c")})
	s.Damage(key("a"))
	check(account, slices.Concat(three(own+"a"), three(other))...)
	do(sns.DeleteTopic{Topic: key("a")})
	check(stranger, other+" http://foreign")
	do(sns.DeleteTopic{Topic: theirs})
	check(stranger)
	check(account)
}

// TestPlaceHasNoPassword: a place tells no password, and is good nevertheless;
// also when the subscription there is gone.
func TestPlaceHasNoPassword(t *testing.T) {
	for _, removed := range []bool{false, true} {
		s := sns.New()
		do := func(c sns.Command) sns.Result {
			t.Helper()
			result, _, err := s.Apply(sns.Moment{Now: start}, c)
			if err != nil {
				t.Fatalf("%T: %v", c, err)
			}
			return result
		}
		do(sns.CreateTopic{Topic: key("a")})
		passwords := []string{"$", "+", "a", "b", "c"}
		for i, password := range passwords {
			token := sns.TokenHash{byte(i)}
			do(sns.Subscribe{
				Topic: key("a"), Protocol: sns.HTTP, Endpoint: "http://me:" + password + "@host/", Owner: account,
				Subscription: sns.SubscriptionID{byte(i + 1)}, Token: token,
			})
			do(sns.ConfirmSubscription{Topic: key("a"), Token: token, Signed: true})
		}
		var seen []string
		for c := (sns.ListSubscriptionsByTopic{Topic: key("a"), Limit: 1}); ; {
			page := do(c).(sns.ListSubscriptionsResult)
			for _, sub := range page.Subscriptions {
				seen = append(seen, strings.TrimSuffix(strings.TrimPrefix(sub.Endpoint, "http://me:"), "@host/"))
			}
			if !page.More {
				break
			}
			if c.After = sns.PlaceOf(page.Subscriptions[0]); c.After.Endpoint != "http://me:" {
				t.Fatalf("got the place %+v", c.After)
			}
			if removed {
				do(sns.Unsubscribe{Topic: key("a"), Subscription: page.Subscriptions[0].Subscription, Signed: true})
			}
		}
		if !slices.Equal(seen, passwords) {
			t.Errorf("removed %v: got %q, want %q", removed, seen, passwords)
		}
	}
}
