package sns_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"holdfast.internal/sns"
)

// TestScripts plays the scripts in testdata/scripts. After each command the state
// is frozen and thawed, so that every script also is one about snapshots.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no scripts, %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := &script{state: sns.New(), outlet: &queues{gone: map[string]bool{}}, now: start}
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string { return s.play(t, d) })
		})
	}
}

// script is a State that is told what to do. Subscriptions are known by the numbers
// of the Subscribe that made them.
type script struct {
	state   *sns.State
	outlet  *queues
	now     sns.Time
	minted  int
	publish int
}

func (s *script) moment() sns.Moment {
	return sns.Moment{Now: s.now, Rules: sns.Rules{DedupWindow: 5 * time.Minute, FilterLimit: 2}, Outlet: s.outlet}
}

func (s *script) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	defer func() {
		thawed, err := sns.Thaw(s.state.Freeze().AppendTo(nil))
		if err != nil {
			t.Fatalf("%s: thaw: %v", d.Pos, err)
		}
		s.state = thawed
	}()
	switch d.Cmd {
	case "wait":
		wait, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(wait)
		s.state.Pulse(s.moment())
		return ""
	case "gone":
		s.outlet.gone[d.CmdArgs[0].Key] = true
		return ""
	case "census":
		var b strings.Builder
		for _, c := range s.state.Census() {
			fmt.Fprintf(&b, "%s: %d confirmed, %d pending, %+v\n", c.Topic.Name, c.Confirmed, c.Pending, c.Counters)
		}
		return b.String()
	}
	c, err := s.command(t, d)
	if err != nil {
		return err.Error()
	}
	result, events, refusal := s.state.Apply(s.moment(), c)
	if refusal != nil {
		return refusal.Error()
	}
	return s.answer(c.Target(), result, events)
}

// pairs are the lines of a command's input, cut at the first "=".
func pairs(d *datadriven.TestData) (list []sns.Attribute) {
	for line := range strings.Lines(d.Input) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		list = append(list, sns.Attribute{Name: sns.AttributeName(name), Value: value})
	}
	return list
}

func (s *script) command(t *testing.T, d *datadriven.TestData) (sns.Command, error) {
	t.Helper()
	topic := sns.TopicKey{Account: account}
	if len(d.CmdArgs) > 0 {
		topic.Name = d.CmdArgs[0].Key
	}
	arg := func(i int) string { return d.CmdArgs[i].Key }
	switch d.Cmd {
	case "create":
		return createTopic(topic, d)
	case "delete":
		return sns.DeleteTopic{Topic: topic}, nil
	case "topics":
		return sns.ListTopics{Account: account, After: topic.Name, Limit: 2}, nil
	case "get":
		return sns.GetTopicAttributes{Topic: topic}, nil
	case "set":
		a, refusal := sns.CanonicalTopicAttribute(topic, pairs(d)[0])
		if refusal != nil {
			return nil, refusal
		}
		return sns.SetTopicAttributes{Topic: topic, Attribute: a}, nil
	case "tags":
		return sns.ListTagsForResource{Topic: topic}, nil
	case "untag":
		return sns.UntagResource{Topic: topic, Keys: []string{arg(1)}}, nil
	case "subscriptions":
		return sns.ListSubscriptionsByTopic{Topic: topic, Limit: 10}, nil
	case "publish":
		return s.publishCommand(topic, d), nil
	}
	return s.subscriptionCommand(t, topic, d, arg)
}

func createTopic(topic sns.TopicKey, d *datadriven.TestData) (sns.Command, error) {
	c := sns.CreateTopic{Topic: topic}
	var given []sns.Attribute
	for _, a := range pairs(d) {
		if key, ok := strings.CutPrefix(string(a.Name), "tag:"); ok {
			c.Tags = append(c.Tags, sns.Tag{Key: key, Value: a.Value})
		} else {
			given = append(given, a)
		}
	}
	if refusal := sns.SortTags(c.Tags); refusal != nil {
		return nil, refusal
	}
	var refusal *sns.Error
	if c.Attributes, refusal = sns.CanonicalTopicAttributes(given); refusal != nil {
		return nil, refusal
	}
	return c, nil
}

func subscription(number string) (id sns.SubscriptionID) {
	copy(id[:], fmt.Sprintf("%016s", number))
	return id
}

func (s *script) subscriptionCommand(t *testing.T, topic sns.TopicKey, d *datadriven.TestData, arg func(int) string) (sns.Command, error) {
	t.Helper()
	switch d.Cmd {
	case "subscribe":
		protocol, endpoint := sns.ParseProtocol(arg(1)), arg(2)
		if protocol == sns.SQS && !strings.Contains(endpoint, "/") {
			endpoint = "arn:aws:sqs:us-east-1:000000000000:" + endpoint
		}
		if refusal := sns.ValidateEndpoint(topic, protocol, endpoint); refusal != nil {
			return nil, refusal
		}
		s.minted++
		return sns.Subscribe{
			Topic: topic, Subscription: subscription(fmt.Sprint(s.minted)), Protocol: protocol, Endpoint: endpoint,
			Attributes: pairs(d), Principal: "arn:aws:iam::000000000000:user/u", Owner: account,
			Token: sha256.Sum256(fmt.Append(nil, "token ", s.minted)),
		}, nil
	case "confirm":
		return sns.ConfirmSubscription{
			Topic: topic, Token: sha256.Sum256([]byte("token " + arg(1))), Signed: d.HasArg("signed"), AuthenticateOnUnsubscribe: d.HasArg("authenticate"),
		}, nil
	case "unsubscribe":
		return sns.Unsubscribe{Topic: topic, Subscription: subscription(arg(1)), Signed: !d.HasArg("unsigned")}, nil
	case "sub-get":
		return sns.GetSubscriptionAttributes{Topic: topic, Subscription: subscription(arg(1))}, nil
	case "sub-set":
		return sns.SetSubscriptionAttributes{Topic: topic, Subscription: subscription(arg(1)), Attribute: pairs(d)[0]}, nil
	case "sub-reset":
		reset := sns.Attribute{Name: sns.AttributeName(arg(2))}
		return sns.SetSubscriptionAttributes{Topic: topic, Subscription: subscription(arg(1)), Attribute: reset, Reset: true}, nil
	}
	t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	return nil, nil
}

// publishCommand publishes one message for every line: text, and perhaps group=,
// dedup=, size=, and attributes with a type, as a:String=x.
func (s *script) publishCommand(topic sns.TopicKey, d *datadriven.TestData) sns.Command {
	c := sns.PublishBatch{Topic: topic, Single: d.HasArg("single")}
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		m := sns.Message{TopicARN: sns.TopicARN(region, topic), Text: []byte(fields[0])}
		s.publish++
		m.ID[15] = byte(s.publish)
		e := sns.PublishEntry{MessageID: m.ID, Size: len(m.Text), SHA256: sha256.Sum256(m.Text)}
		m.DeduplicationID = fmt.Sprintf("%x", e.SHA256)
		for _, field := range fields[1:] {
			name, value, _ := strings.Cut(field, "=")
			switch name {
			case "group":
				e.GroupID, m.GroupID = value, value
			case "dedup":
				e.DeduplicationID, m.DeduplicationID = value, value
			case "size":
				_, _ = fmt.Sscan(value, &e.Size)
			default:
				attribute, dataType, _ := strings.Cut(name, ":")
				m.Attributes = append(m.Attributes, sns.MessageAttribute{Name: attribute, DataType: dataType, Value: []byte(value)})
			}
		}
		e.Content = sns.AppendMessage(nil, &m)
		c.Entries = append(c.Entries, e)
	}
	return c
}

func (s *script) answer(topic sns.TopicKey, result sns.Result, events []sns.Event) string {
	var b strings.Builder
	switch r := result.(type) {
	case sns.Done:
		b.WriteString("ok\n")
	case sns.GetTopicAttributesResult:
		for _, a := range sns.TopicAttributes(region, topic, r) {
			if !slices.Contains([]string{"TopicArn", "Owner", "Policy"}, string(a.Name)) || a.Value != sns.DefaultPolicy(region, topic) && a.Name == "Policy" {
				fmt.Fprintf(&b, "%s=%s\n", a.Name, a.Value)
			}
		}
	case sns.GetSubscriptionAttributesResult:
		for _, a := range sns.SubscriptionAttributes(region, r) {
			fmt.Fprintf(&b, "%s=%s\n", a.Name, a.Value)
		}
	case sns.SubscribeResult:
		fmt.Fprintf(&b, "%s pending=%v\n", strings.TrimLeft(string(r.Subscription[:]), "0"), r.Pending)
	case sns.ConfirmSubscriptionResult:
		fmt.Fprintf(&b, "%s\n", strings.TrimLeft(string(r.Subscription[:]), "0"))
	case sns.ListSubscriptionsResult:
		for _, l := range r.Subscriptions {
			fmt.Fprintf(&b, "%s %s pending=%v\n", l.Protocol, l.Endpoint, l.Pending)
		}
	case sns.PublishBatchResult:
		s.published(&b, r, events)
	default:
		fmt.Fprintf(&b, "%+v\n", r)
	}
	return b.String()
}

func (s *script) published(b *strings.Builder, r sns.PublishBatchResult, events []sns.Event) {
	for _, e := range r.Entries {
		fmt.Fprintf(b, "message %d", e.MessageID[15])
		if e.SequenceNumber != 0 {
			fmt.Fprintf(b, " sequence %s", sns.SequenceText(e.SequenceNumber))
		}
		fmt.Fprintf(b, " copies %d\n", e.Copies)
	}
	for _, c := range s.outlet.copies {
		stored, _ := sns.ParseStored(s.outlet.records[c.Body-1])
		fmt.Fprintf(b, "  %s: %s shape=%d group=%q dedup=%q\n", c.Queue.Name, stored.Message.Text, c.Shape, c.GroupID, c.DeduplicationID)
	}
	s.outlet.copies = nil
	for _, e := range events {
		fmt.Fprintf(b, "  event %d: %s %s\n", e.Kind, strings.TrimLeft(string(e.Subscription[:]), "0"), e.Outcome)
	}
}
