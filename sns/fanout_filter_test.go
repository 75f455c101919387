package sns_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.internal/sns"
)

// counter is an outlet that counts the copies of each command.
type counter struct{ copies, steps int }

func (*counter) Store([]byte) uint64 { return 1 }
func (c *counter) Deliver(*sns.Copy) (sns.Outcome, int) {
	c.copies++
	return sns.Delivered, c.steps
}

// TestFanOutToCostlyQueues: so does one whose copies take more than a step each.
func TestFanOutToCostlyQueues(t *testing.T) {
	fanOutInParts(t, &counter{steps: 99}, `{"a":["last"]}`)
}

// TestFanOutOfCostlyFilters: a publish whose body has many values for filters to
// look at goes on with Pulses, and reaches every subscription once.
func TestFanOutOfCostlyFilters(t *testing.T) {
	fanOutInParts(t, &counter{}, `{"a":[`+strings.Repeat("1,", 6_400)+`"last"]}`)
}

// fanOutInParts publishes a text to 50 subscriptions, each of which takes about a
// hundred steps.
func fanOutInParts(t *testing.T, out *counter, text string) {
	t.Helper()
	s := sns.New()
	at := sns.Moment{Now: 1, Outlet: out}
	topic := sns.TopicKey{Account: "000000000000", Name: "t"}
	do := func(c sns.Command) {
		t.Helper()
		if _, _, err := s.Apply(at, c); err != nil {
			t.Fatal(err)
		}
	}
	do(sns.CreateTopic{Topic: topic})
	const subscriptions = 50
	for i := range subscriptions {
		do(sns.Subscribe{
			Topic: topic, Subscription: sns.SubscriptionID{byte(i + 1)}, Protocol: sns.SQS, Owner: topic.Account,
			Endpoint: fmt.Sprintf("arn:aws:sqs:us-east-1:000000000000:q%d", i),
			Attributes: []sns.Attribute{
				{Name: sns.FilterPolicyScope, Value: "MessageBody"}, {Name: sns.FilterPolicyAttribute, Value: `{"a":["last"]}`},
			},
		})
	}
	m := sns.Message{Text: []byte(text)}
	do(sns.PublishBatch{Topic: topic, Single: true, Entries: []sns.PublishEntry{{Size: len(m.Text), Content: sns.AppendMessage(nil, &m)}}})
	if out.copies < 5 || out.copies > 15 {
		t.Errorf("got %d copies in the publish, want about ten", out.copies)
	}
	for range subscriptions {
		if _, due := s.NextPulse(); !due {
			break
		}
		before := out.copies
		s.Pulse(at)
		if out.copies-before > 15 {
			t.Errorf("got %d copies in a pulse, want about ten", out.copies-before)
		}
	}
	if out.copies != subscriptions {
		t.Errorf("got %d copies, want %d", out.copies, subscriptions)
	}
}
