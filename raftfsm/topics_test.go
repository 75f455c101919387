package raftfsm

import (
	"bytes"
	"crypto"
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

func testTopic(name string) sns.TopicKey { return sns.TopicKey{Account: "000000000000", Name: name} }

func testQueueARN(name string) string { return "arn:aws:sqs:us-east-1:000000000000:" + name }

// testSigningKey is made once: it takes a while.
var testSigningKey = sync.OnceValue(func() SigningKey {
	key, err := NewSigningKey(testStart, []string{"sns.example.com"})
	if err != nil {
		panic(err)
	}
	return key
})

func subscriptionID(n int) (id sns.SubscriptionID) {
	copy(id[:], fmt.Sprintf("%016d", n))
	return id
}

// publish publishes one message to a topic; its id is made from the log's length.
func (m *testMachine) publish(message sns.Message) sns.PublishResult {
	m.t.Helper()
	key := testTopic(message.TopicARN[strings.LastIndex(message.TopicARN, ":")+1:])
	id := sha256.Sum256(fmt.Append(nil, m.index))
	message.ID = sns.MessageID(id[:16])
	e := sns.PublishEntry{
		MessageID: message.ID, Size: sns.Size(message.Text, message.Attributes),
		GroupID: message.GroupID, DeduplicationID: message.DeduplicationID,
	}
	c := sns.PublishBatch{Topic: key, Entries: []sns.PublishEntry{e}, Single: true}
	b, err := AppendCommand(nil, c, [][]byte{sns.AppendMessage(nil, &message)})
	if err != nil {
		m.t.Fatal(err)
	}
	m.index++
	entry := &raft.Log{Index: m.index, Type: raft.LogCommand, Data: AppendOperation(AppendEntryHeader(nil, m.now), Origin{}, b)}
	m.log = append(m.log, entry)
	o := m.Apply(entry).(*Applied).Outcomes[0]
	if o.Err != nil {
		m.t.Fatalf("publish: %v", o.Err)
	}
	return o.Result.(sns.PublishBatchResult).Entries[0]
}

func topicARN(name string) string { return sns.TopicARN("us-east-1", testTopic(name)) }

// subscribe subscribes a queue, which it makes, with attributes.
func (m *testMachine) subscribe(n int, topic, queue string, attributes ...sns.Attribute) {
	m.t.Helper()
	create := sqs.CreateQueue{Queue: testQueue(queue)}
	if sqs.IsFIFO(queue) {
		create.Attributes = []sqs.Attribute{{Name: sqs.FifoQueue, Value: "true"}}
	}
	m.must(create)
	m.must(sns.Subscribe{
		Topic: testTopic(topic), Subscription: subscriptionID(n), Protocol: sns.SQS, Endpoint: testQueueARN(queue),
		Attributes: attributes, Principal: "arn:aws:iam::000000000000:root", Owner: "000000000000",
	})
}

// contents receives what is in a queue and returns the contents.
func (m *testMachine) contents(queue string) (contents []sqs.Content) {
	m.t.Helper()
	for {
		o := m.receive(testQueue(queue))
		if len(o.Bodies) == 0 {
			return contents
		}
		for i, fetch := range o.Bodies {
			b, err := fetch()
			if err != nil {
				m.t.Fatal(err)
			}
			again, err := fetch()
			if err != nil || !bytes.Equal(b, again) {
				m.t.Fatalf("body %d of %s is another when it is read again", i, queue)
			}
			c, err := sqs.ParseContent(b)
			if err != nil {
				m.t.Fatal(err)
			}
			if c.BodyMD5 != md5.Sum(c.Body) {
				m.t.Errorf("body %d of %s: digest of another body", i, queue)
			}
			contents = append(contents, c)
		}
	}
}

func TestFanOut(t *testing.T) {
	m := newTestMachine(t)
	m.must(sns.CreateTopic{Topic: testTopic("t")})
	m.subscribe(1, "t", "plain")
	m.subscribe(2, "t", "raw", sns.Attribute{Name: sns.RawMessageDelivery, Value: "true"})
	attributes := []sns.MessageAttribute{
		{Name: "attr1", DataType: "Number", Value: []byte("99.12")}, {Name: "b", DataType: "Binary", Value: []byte{2, 3, 4}, Binary: true},
	}
	before := len(m.bodies.bodies)
	sent := m.publish(sns.Message{TopicARN: topicARN("t"), Subject: "s", Text: []byte("a \"message\""), Attributes: attributes})
	if sent.Copies != 2 || len(m.bodies.bodies) != before+1 {
		t.Errorf("got %d copies of %d bodies, want 2 of 1", sent.Copies, len(m.bodies.bodies)-before)
	}

	raw := m.contents("raw")
	if len(raw) != 1 || string(raw[0].Body) != `a "message"` || len(raw[0].Attributes) != 2 {
		t.Fatalf("got %+v", raw)
	}
	if got := fmt.Sprintf("%x", sqs.AttributesDigest(raw[0].Attributes[:1])); got != "d302007e9aa062660afc85fd0a482472" {
		t.Errorf("digest of attr1: got %s", got) // AWS recording test_publish_sqs_from_sns
	}
	plain := m.contents("plain")
	if len(plain) != 1 || len(plain[0].Attributes) != 0 {
		t.Fatalf("got %+v", plain)
	}
	want := `{
  "Type" : "Notification",
  "MessageId" : "` + uuidText(sent.MessageID) + `",
  "TopicArn" : "arn:aws:sns:us-east-1:000000000000:t",
  "Subject" : "s",
  "Message" : "a \"message\"",
  "Timestamp" : "2023-11-14T22:13:20.000Z",
  "UnsubscribeURL" : "http://127.0.0.1:4566/?Action=Unsubscribe&SubscriptionArn=arn:aws:sns:us-east-1:000000000000:t:30303030-3030-3030-3030-303030303031",
  "MessageAttributes" : {
    "attr1" : {"Type":"Number","Value":"99.12"},
    "b" : {"Type":"Binary","Value":"AgME"}
  }
}`
	if got := string(plain[0].Body); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if raw[0].MessageID == plain[0].MessageID || raw[0].MessageID == sqs.MessageID(sent.MessageID) {
		t.Error("two messages have one id")
	}
}

func uuidText(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// TestSignatures verifies messages as a consumer does, before and after keys and
// hosts change, and that what was published before does not change.
func TestSignatures(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		m := newTestMachine(t)
		m.must(AddSigningKey{Key: testSigningKey(), First: true})
		m.must(AddSigningKey{Key: SigningKey{}, First: true}) // somebody was faster
		m.must(SetSetting{Name: "sns-cert-url", Value: "https://sns.example.com"})
		m.now += 10
		m.must(sns.CreateTopic{Topic: testTopic("t"), Attributes: []sns.Attribute{{Name: sns.SignatureVersion, Value: version}}})
		m.subscribe(1, "t", "a")
		m.publish(sns.Message{TopicARN: topicARN("t"), Subject: "s", Text: []byte("mit Umlaut: ä")})
		first := m.contents("a")[0].Body
		verify(t, m, first, version)

		m.must(sqs.SetQueueAttributes{Queue: testQueue("a"), Attributes: []sqs.Attribute{{Name: sqs.VisibilityTimeout, Value: "0"}}})
		second, err := NewSigningKey(testStart, []string{"other.example.com"})
		if err != nil {
			t.Fatal(err)
		}
		m.must(AddSigningKey{Key: second})
		m.must(SetSetting{Name: "sns-cert-url", Value: "https://other.example.com"})
		m.now += 60_000
		again := m.must(sqs.ReceiveMessage{Queue: testQueue("a"), MaxMessages: 1, VisibilityTimeout: 3600_000_000_000})
		if got := bodyOf(t, again); !bytes.Equal(got, first) {
			t.Errorf("version %s: after new keys and hosts got %s, before %s", version, got, first)
		}
		m.publish(sns.Message{TopicARN: topicARN("t"), Text: []byte("x")})
		latest := m.must(sqs.ReceiveMessage{Queue: testQueue("a"), MaxMessages: 1, VisibilityTimeout: 3600_000_000_000})
		if got := bodyOf(t, latest); !bytes.Contains(got, []byte("https://other.example.com/")) {
			t.Errorf("got %s, want the new host", got)
		} else {
			verify(t, m, got, version)
		}
	}
}

func bodyOf(t *testing.T, o Outcome) []byte {
	t.Helper()
	b, err := o.Bodies[0]()
	if err != nil {
		t.Fatal(err)
	}
	c, err := sqs.ParseContent(b)
	if err != nil {
		t.Fatal(err)
	}
	return c.Body
}

// verify checks a notification with its certificate, as the SNS developer guide
// says ("Verifying the signatures of Amazon SNS messages").
func verify(t *testing.T, m *testMachine, notification []byte, version string) {
	t.Helper()
	var n map[string]string
	if err := json.Unmarshal(notification, &n); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, name := range []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"} {
		if value, ok := n[name]; ok {
			text += name + "\n" + value + "\n"
		}
	}
	settings := m.Settings()
	_, name, _ := strings.Cut(n["SigningCertURL"], "https://")
	_, name, _ = strings.Cut(name, "/")
	served, ok := settings.CertificatePEM(name)
	if !ok {
		t.Fatalf("no certificate %s", n["SigningCertURL"])
	}
	block, _ := strings.CutPrefix(string(served), "-----BEGIN CERTIFICATE-----\n")
	block, _, _ = strings.Cut(block, "-----END")
	der, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(block, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(n["Signature"])
	if err != nil {
		t.Fatal(err)
	}
	hash, sum := crypto.SHA1, sha1.Sum([]byte(text))
	digest := sum[:]
	if version == "2" {
		wide := sha256.Sum256([]byte(text))
		hash, digest = crypto.SHA256, wide[:]
	}
	if err := rsa.VerifyPKCS1v15(certificate.PublicKey.(*rsa.PublicKey), hash, digest, signature); err != nil || n["SignatureVersion"] != version {
		t.Errorf("version %s: %v in %s", version, err, notification)
	}
}

// TestDeadLetters: what a queue does not take goes to the dead-letter queue of the
// subscription, and nowhere else; what cannot be raw goes there in its envelope.
func TestDeadLetters(t *testing.T) {
	redrive := sns.Attribute{Name: sns.RedrivePolicy, Value: `{"deadLetterTargetArn":"` + testQueueARN("dead") + `"}`}
	attributes := slices.Repeat([]sns.MessageAttribute{{Name: "a", DataType: "String", Value: []byte("v")}}, 11)
	for i := range attributes {
		attributes[i].Name = fmt.Sprint("a", i)
	}
	nothing := []sns.ProtocolText{{Protocol: sns.SQS}}
	deny := sqs.Attribute{Name: sqs.Policy, Value: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"000000000001"},"Action":"sqs:*","Resource":"*"}]}`}
	cases := []struct {
		name    string
		raw     string
		spoil   Command
		message sns.Message
		want    string // in the dead-letter queue
		outcome sns.Outcome
	}{
		{name: "queue deleted", raw: "false", spoil: sqs.DeleteQueue{Queue: testQueue("q")}, want: "Notification", outcome: sns.QueueGone},
		{name: "queue deleted, raw", raw: "true", spoil: sqs.DeleteQueue{Queue: testQueue("q")}, want: "text", outcome: sns.QueueGone},
		{
			name: "policy", raw: "true", spoil: sqs.SetQueueAttributes{Queue: testQueue("q"), Attributes: []sqs.Attribute{deny}},
			want: "text", outcome: sns.QueueDenied,
		},
		{name: "too many attributes", raw: "true", message: sns.Message{Attributes: attributes}, want: `"a10" : {"Type":"String","Value":"v"}`, outcome: sns.Unsuitable},
		{name: "no text", raw: "true", message: sns.Message{Texts: nothing}, want: `"Message" : ""`, outcome: sns.Unsuitable},
		{name: "damaged", raw: "true", spoil: Pulse{}, want: "text", outcome: sns.QueueBroken},
	}
	for _, c := range cases {
		m := newTestMachine(t)
		var heard []sns.Event
		m.NotifyTopics(func(events []sns.Event) { heard = append(heard, events...) })
		m.must(sqs.CreateQueue{Queue: testQueue("dead")})
		m.must(sns.CreateTopic{Topic: testTopic("t")})
		m.subscribe(1, "t", "q", redrive, sns.Attribute{Name: sns.RawMessageDelivery, Value: c.raw})
		m.subscribe(2, "t", "other")
		switch c.spoil.(type) {
		case nil:
		case Pulse:
			m.state.queues.Damage(testQueue("q"))
		default:
			m.must(c.spoil)
		}
		c.message.TopicARN, c.message.Text = topicARN("t"), []byte("text")
		m.publish(c.message)
		dead := m.contents("dead")
		if len(dead) != 1 || !strings.Contains(string(dead[0].Body), c.want) || c.want == "text" && string(dead[0].Body) != c.want {
			t.Errorf("%s: got %+v", c.name, dead)
		}
		if len(m.contents("other")) != 1 {
			t.Errorf("%s: the other queue has not got it", c.name)
		}
		want := sns.Event{Kind: sns.DeliveryRedriven, Topic: testTopic("t"), Subscription: subscriptionID(1), Outcome: c.outcome}
		if !slices.Equal(heard, []sns.Event{want}) {
			t.Errorf("%s: got %+v, want %+v", c.name, heard, want)
		}
		n := m.state.topics.Census()[0]
		if n.Delivered != 1 || n.Failed != 1 || n.Redriven != 1 {
			t.Errorf("%s: got %+v", c.name, n)
		}
	}
}

// TestFIFOTopic: ids go to FIFO queues and not to standard ones, and duplicates
// nowhere.
func TestFIFOTopic(t *testing.T) {
	m := newTestMachine(t)
	m.must(AddSigningKey{Key: testSigningKey(), First: true})
	m.must(sns.CreateTopic{Topic: testTopic("t.fifo"), Attributes: []sns.Attribute{{Name: sns.FifoTopic, Value: "true"}}})
	m.subscribe(1, "t.fifo", "a.fifo")
	m.subscribe(2, "t.fifo", "b")
	message := sns.Message{TopicARN: topicARN("t.fifo"), Text: []byte("x"), GroupID: "g", DeduplicationID: "d"}
	first := m.publish(message)
	again := m.publish(message)
	if first.SequenceNumber != 1 || again != (sns.PublishResult{MessageID: first.MessageID, SequenceNumber: 1}) {
		t.Errorf("got %+v, then %+v", first, again)
	}
	ordered, loose := m.contents("a.fifo"), m.contents("b")
	if len(ordered) != 1 || ordered[0].GroupID != "g" || ordered[0].DeduplicationID != "d" {
		t.Errorf("got %+v", ordered)
	}
	if len(loose) != 1 || loose[0].GroupID != "" {
		t.Errorf("got %+v", loose)
	}
	if text := string(loose[0].Body); !strings.Contains(text, `"SequenceNumber" : "10000000000000000001",`) || strings.Contains(text, "Sign") {
		t.Errorf("got %s", text)
	}
}

// TestLargeFanOut: each of many subscriptions gets exactly one copy, however often
// the state is restored meanwhile, and no entry does too much.
func TestLargeFanOut(t *testing.T) {
	const receivers = 2500
	m := newTestMachine(t)
	m.must(sns.CreateTopic{Topic: testTopic("t")})
	for i := range receivers {
		m.subscribe(i+1, "t", fmt.Sprint("q", i))
	}
	first := m.publish(sns.Message{TopicARN: topicARN("t"), Text: []byte("1")})
	second := m.publish(sns.Message{TopicARN: topicARN("t"), Text: []byte("2")})
	if first.Copies != sns.PulseSteps || second.Copies != 0 || second.Body != first.Body+1 {
		t.Errorf("got %+v, %+v", first, second)
	}
	m.subscribe(receivers+1, "t", "late")
	m.must(sns.Unsubscribe{Topic: testTopic("t"), Subscription: subscriptionID(receivers), Signed: true})
	for pulses := 0; ; pulses++ {
		m.restoreSelf()
		if at, due := m.NextPulse(); !due || at > m.now {
			if want := (2*receivers - 1) / sns.PulseSteps; pulses != want {
				t.Errorf("got %d pulses, want %d", pulses, want)
			}
			break
		}
		m.must(Pulse{})
	}
	for i := range receivers {
		got := m.contents(fmt.Sprint("q", i))
		want := 2
		switch i {
		case receivers - 1:
			want = 0 // it left before its turn
		default:
			if len(got) == 2 && got[0].MessageID == got[1].MessageID {
				t.Fatalf("queue %d: two messages of one id", i)
			}
		}
		if len(got) != want {
			t.Fatalf("queue %d: got %d messages, want %d", i, len(got), want)
		}
	}
	if got := m.contents("late"); len(got) != 0 {
		t.Errorf("a later subscription got %d messages", len(got))
	}
}

// restoreSelf makes a snapshot and goes on with a machine that was restored from
// it.
func (m *testMachine) restoreSelf() {
	m.t.Helper()
	snapshot := snapshotOf(m.t, m.Machine)
	restored := New(m.bodies, nil).WithoutRecovery()
	if err := restore(restored, snapshot); err != nil {
		m.t.Fatal(err)
	}
	m.Machine = restored
	if again := snapshotOf(m.t, restored); !bytes.Equal(again, snapshot) {
		m.t.Fatal("a restored machine makes another snapshot")
	}
}

// TestTopicPanic: a command that panics damages its topic alone, and a queue that
// panics while it takes a copy damages the queue alone.
func TestTopicPanic(t *testing.T) {
	m := newTestMachine(t)
	m.letPanic = false
	m.must(sns.CreateTopic{Topic: testTopic("bad")})
	m.must(sns.CreateTopic{Topic: testTopic("good")})
	m.plantedTopic = func(c sns.Command) {
		if c.Target().Name == "bad" {
			panic("planted")
		}
	}
	refused := m.do(sns.GetTopicAttributes{Topic: testTopic("bad")})
	if e, ok := errors.AsType[*sns.Error](refused.Err); !ok || e.Code != sns.InternalError {
		t.Errorf("got %v", refused.Err)
	}
	m.plantedTopic = nil
	census := m.state.topics.Census()
	if !census[0].Damaged || census[1].Damaged {
		t.Errorf("got %+v", census)
	}
	if o := m.do(sns.SetTopicAttributes{Topic: testTopic("bad")}); o.Err == nil {
		t.Error("a damaged topic was changed")
	}
	m.restoreSelf()
	m.must(sns.DeleteTopic{Topic: testTopic("bad")})
	m.must(sns.CreateTopic{Topic: testTopic("bad")})
}

// TestConfirmationPanic: a ConfirmSubscription that panics damages the topic that its
// token is of, not one that the request happens to name.
func TestConfirmationPanic(t *testing.T) {
	m := newTestMachine(t)
	m.letPanic = false
	hash := sns.TokenHash{1}
	m.must(sns.CreateTopic{Topic: testTopic("bad")})
	m.must(sns.CreateTopic{Topic: testTopic("named")})
	m.must(sns.Subscribe{
		Topic: testTopic("bad"), Subscription: sns.SubscriptionID{1}, Protocol: sns.HTTP, Endpoint: "http://example.com/", Token: hash,
		Principal: "arn:aws:iam::000000000000:root", Owner: "000000000000",
	})
	m.plantedTopic = func(sns.Command) { panic("planted") }
	for _, token := range []sns.TokenHash{{2}, hash} { // nobody has the first one
		m.do(sns.ConfirmSubscription{Topic: testTopic("named"), Token: token})
	}
	if report, _ := m.LastPanic(); report.Queue.Name != "bad" {
		t.Errorf("got a report of %v, want one of bad", report.Queue)
	}
	if census := m.state.topics.Census(); !census[0].Damaged || census[1].Damaged {
		t.Errorf("got %+v, want bad damaged alone", census)
	}
}

// TestUnion tries the sets of small numbers against a loop.
func TestUnion(t *testing.T) {
	for a := range 1 << 7 {
		for b := range 1 << 7 {
			got := 0
			last := uint64(0)
			for first, count := range union(rangesOf(a), rangesOf(b)) {
				if first < last || count == 0 {
					t.Fatalf("%b and %b: %d after %d", a, b, first, last)
				}
				for n := first; n < first+count; n++ {
					got |= 1 << n
				}
				last = first + count
			}
			if got != a|b {
				t.Fatalf("%b and %b: got %b", a, b, got)
			}
		}
	}
}

func rangesOf(set int) func(yield func(first, count uint64) bool) {
	return func(yield func(first, count uint64) bool) {
		for n := uint64(0); n < 7; {
			if set>>n&1 == 0 {
				n++
				continue
			}
			first := n
			for set>>n&1 == 1 {
				n++
			}
			if !yield(first, n-first) {
				return
			}
		}
	}
}
