package conformance

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// scene is one case being played in one protocol.
type scene struct {
	*testing.T
	wire     wire
	endpoint string
}

// script is one case. Its id is one of README.md (P5, Q1 …) or a name.
type script struct {
	id      string
	title   string
	only    wire // "" for both protocols
	setting setting
	long    bool // takes more than 20 s
	play    func(s *scene)
}

// play runs each script in its protocols, all at the same time.
func play(t *testing.T, scripts []script) {
	t.Parallel()
	for _, c := range scripts {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			if c.long && !*long {
				t.Skipf("%s: takes long, runs with -long", c.title)
			}
			for _, w := range []wire{jsonWire, queryWire} {
				if c.only != "" && c.only != w {
					continue
				}
				t.Run(string(w), func(t *testing.T) {
					t.Parallel()
					c.play(&scene{T: t, wire: w, endpoint: endpoint(t, c.setting)})
				})
			}
		})
	}
}

// client follows no redirects and keeps enough connections for all scripts.
var client = &http.Client{
	Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true,
		IdleConnTimeout:     5 * time.Second,
	},
	Timeout:       60 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// do sends a request as it stands.
func (s *scene) do(r request) answer {
	s.Helper()
	return s.ask(s.wire, r)
}

func (s *scene) ask(w wire, r request) answer {
	s.Helper()
	a, err := w.do(client, s.endpoint, r)
	if err != nil {
		s.Fatal(err)
	}
	if a.header.Get("x-amzn-RequestId") == "" {
		s.Errorf("the answer has no x-amzn-RequestId")
	}
	return a
}

// call plays an action.
func (s *scene) call(action string, members in) answer {
	s.Helper()
	return s.do(s.wire.render(action, members))
}

// ok plays an action that must succeed, and returns its output.
func (s *scene) ok(action string, members in) tree {
	s.Helper()
	a := s.call(action, members)
	s.succeeded(action, a)
	return a.out
}

// succeeded checks that an answer of SQS or SNS is what an SDK takes for success.
func (s *scene) succeeded(action string, a answer) {
	s.Helper()
	if a.status != http.StatusOK {
		s.Fatalf("%s: got %d %s %q, want 200", action, a.status, a.code, a.message)
	}
	s.hasContentType(a)
	s.hasRequestID(action, a)
	if a.wire == snsWire && a.result == voids[action] {
		s.Errorf("%s: an element for the output: %v, want %v", action, a.result, !voids[action])
	}
}

func (s *scene) hasContentType(a answer) {
	s.Helper()
	got, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	want := "text/xml"
	if a.wire == jsonWire {
		want = "application/x-amz-json-1.0"
	}
	if got != want {
		s.Errorf("Content-Type: got %q, want %q", got, want)
	}
}

// hasRequestID checks that XML has the id that the header has.
func (s *scene) hasRequestID(action string, a answer) {
	s.Helper()
	if id := a.header.Get("x-amzn-RequestId"); a.wire != jsonWire && a.requestID != id {
		s.Errorf("%s: RequestId is %q in the body and %q in the header", action, a.requestID, id)
	}
}

// failure is the error that a case expects.
type failure struct {
	code string // the Query code
	text string // exact; "" when AWS's wording is not recorded
	form string // of Query, where it words it otherwise
}

// fails names an error by its code and, if it is known, its text: one for both
// protocols, or one for JSON and one for Query.
func fails(code string, texts ...string) failure {
	f := failure{code: code}
	if len(texts) > 0 {
		f.text, f.form = texts[0], texts[len(texts)-1]
	}
	return f
}

// refused plays an action that must fail in exactly this way.
func (s *scene) refused(action string, members in, want failure) answer {
	s.Helper()
	a := s.call(action, members)
	s.failed(action, a, want)
	return a
}

// failed checks all that an SDK reads from an error.
func (s *scene) failed(action string, a answer, want failure) {
	s.Helper()
	known, ok := faults[want.code]
	if !ok {
		s.Fatalf("%s: %q is no error of SQS", action, want.code)
	}
	if a.status != known.status || a.code != want.code {
		s.Errorf("%s: got %d %q %q, want %d %q", action, a.status, a.code, a.message, known.status, want.code)
		return
	}
	s.hasContentType(a)
	s.hasRequestID(action, a)
	text := want.text
	if s.wire == queryWire {
		text = want.form
		if !a.detail {
			s.Errorf("%s: the Error has no empty Detail: %s", action, a.body)
		}
	} else if a.kind != known.kind {
		s.Errorf("%s: got __type %q, want %q", action, a.kind, known.kind)
	}
	if text != "" && a.message != text {
		s.Errorf("%s: message\n got %q\nwant %q", action, a.message, text)
	}
	if a.message == "" && want.code != "InvalidAction" {
		s.Errorf("%s: %s without a message", action, a.code)
	}
	if a.fault != "Sender" {
		s.Errorf("%s: got fault %q, want Sender", action, a.fault)
	}
}

const (
	modeled = "com.amazonaws.sqs#"
	generic = "com.amazon.coral.service#"
)

// faults are the errors by their Query code (SQS API reference, "Common errors",
// with the statuses that AWS was recorded with).
var faults = map[string]struct {
	kind   string
	status int
}{
	"AWS.SimpleQueueService.NonExistentQueue":     {modeled + "QueueDoesNotExist", 400},
	"AWS.SimpleQueueService.QueueDeletedRecently": {modeled + "QueueDeletedRecently", 400},
	"QueueAlreadyExists":                          {modeled + "QueueNameExists", 400},
	"InvalidAttributeName":                        {modeled + "InvalidAttributeName", 400},
	"InvalidAttributeValue":                       {modeled + "InvalidAttributeValue", 400},
	"InvalidMessageContents":                      {modeled + "InvalidMessageContents", 400},
	"ReceiptHandleIsInvalid":                      {modeled + "ReceiptHandleIsInvalid", 404},
	"AWS.SimpleQueueService.PurgeQueueInProgress": {modeled + "PurgeQueueInProgress", 403},
	"OverLimit": {modeled + "OverLimit", 403},
	"AWS.SimpleQueueService.EmptyBatchRequest":            {modeled + "EmptyBatchRequest", 400},
	"AWS.SimpleQueueService.TooManyEntriesInBatchRequest": {modeled + "TooManyEntriesInBatchRequest", 400},
	"AWS.SimpleQueueService.BatchEntryIdsNotDistinct":     {modeled + "BatchEntryIdsNotDistinct", 400},
	"AWS.SimpleQueueService.InvalidBatchEntryId":          {modeled + "InvalidBatchEntryId", 400},
	"AWS.SimpleQueueService.BatchRequestTooLong":          {modeled + "BatchRequestTooLong", 400},
	"AWS.SimpleQueueService.UnsupportedOperation":         {modeled + "UnsupportedOperation", 400},
	"ResourceNotFoundException":                           {modeled + "ResourceNotFoundException", 404},
	"MissingParameter":                                    {generic + "MissingRequiredParameterException", 400},
	"InvalidParameterValue":                               {generic + "InvalidParameterValueException", 400},
	"MalformedInput":                                      {generic + "SerializationException", 400},
	"InvalidAction":                                       {generic + "UnknownOperationException", 400},
	"AccessDenied":                                        {generic + "AccessDeniedException", 403},
}

const (
	noSuchQueue      = "AWS.SimpleQueueService.NonExistentQueue"
	invalidValue     = "InvalidParameterValue"
	missingParameter = "MissingParameter"
	invalidID        = "AWS.SimpleQueueService.InvalidBatchEntryId"
)

// queueMissing is worded differently in the two protocols (AWS recording
// test_non_existent_queue).
var queueMissing = fails(noSuchQueue,
	"The specified queue does not exist.",
	"The specified queue does not exist for this wsdl version.")

func (f failure) String() string { return f.code }

// name is a queue name that no other case uses.
func (s *scene) name() string { return "q-" + strings.ToLower(rand.Text()[:16]) }

// queue makes a queue with the given attributes: name, value, name, value.
func (s *scene) queue(attributes ...string) string {
	s.Helper()
	return s.create(s.name(), attributes...)
}

func (s *scene) create(name string, attributes ...string) string {
	s.Helper()
	return s.ok("CreateQueue", createMembers(name, attributes...)).text("QueueUrl")
}

func createMembers(name string, attributes ...string) in {
	members := in{"QueueName": name}
	if len(attributes) > 0 {
		members["Attributes"] = pairs(attributes...)
	}
	return members
}

func pairs(texts ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(texts); i += 2 {
		m[texts[i]] = texts[i+1]
	}
	return m
}

func queueName(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// path is the path of a queue URL.
func path(url string) string {
	i := strings.Index(url, "://")
	return url[i+3+strings.IndexByte(url[i+3:], '/'):]
}

// attributes are those of a queue, by GetQueueAttributes.
func (s *scene) attributes(url string, names ...string) map[string]string {
	s.Helper()
	if len(names) == 0 {
		names = []string{"All"}
	}
	return attributesOf(s.ok("GetQueueAttributes", in{"QueueUrl": url, "AttributeNames": names}))
}

// attributesOf are those in an output, or of a message.
func attributesOf(t tree) map[string]string {
	got := map[string]string{}
	for _, name := range t.names("Attributes") {
		got[name] = t.text("Attributes", name)
	}
	return got
}

// hasAttributes checks some attributes of a queue: name, value …; "-" means absent.
func (s *scene) hasAttributes(url string, want ...string) {
	s.Helper()
	s.has(s.attributes(url), want...)
}

// has checks some attributes: name, value …; "-" means absent.
func (s *scene) has(got map[string]string, want ...string) {
	s.Helper()
	for i := 0; i < len(want); i += 2 {
		value, ok := got[want[i]]
		if !ok {
			value = "-"
		}
		if value != want[i+1] {
			s.Errorf("%s: got %q, want %q", want[i], value, want[i+1])
		}
	}
}

func (s *scene) set(url string, attributes ...string) {
	s.Helper()
	s.ok("SetQueueAttributes", in{"QueueUrl": url, "Attributes": pairs(attributes...)})
}

// with is a copy of members with others added.
func (members in) with(others in) in {
	both := maps.Clone(members)
	maps.Copy(both, others)
	return both
}

// send sends a body, with further members if given, and returns the output.
func (s *scene) send(url, body string, more ...in) tree {
	s.Helper()
	members := in{"QueueUrl": url, "MessageBody": body}
	for _, m := range more {
		members = members.with(m)
	}
	out := s.ok("SendMessage", members)
	if got, want := out.text("MD5OfMessageBody"), digest(body); got != want {
		s.Errorf("MD5OfMessageBody: got %s, want %s", got, want)
	}
	if !uuid.MatchString(out.text("MessageId")) {
		s.Errorf("MessageId: got %q, want a UUID", out.text("MessageId"))
	}
	return out
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func digest(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// receive returns the messages of one ReceiveMessage.
func (s *scene) receive(url string, more ...in) []tree {
	s.Helper()
	members := in{"QueueUrl": url}
	for _, m := range more {
		members = members.with(m)
	}
	out := s.ok("ReceiveMessage", members)
	if _, present := out["Messages"]; present && len(out.list("Messages")) == 0 {
		s.Errorf("an empty receive has Messages: %v", out)
	}
	messages := out.list("Messages")
	for _, m := range messages {
		if got, want := m.text("MD5OfBody"), digest(m.text("Body")); got != want {
			s.Errorf("MD5OfBody of %.40q: got %s, want %s", m.text("Body"), got, want)
		}
	}
	return messages
}

// one receives exactly one message.
func (s *scene) one(url string, more ...in) tree {
	s.Helper()
	messages := s.receive(url, more...)
	if len(messages) != 1 {
		s.Fatalf("got %d messages, want 1", len(messages))
	}
	return messages[0]
}

// none checks that a receive yields nothing.
func (s *scene) none(url string, more ...in) {
	s.Helper()
	if messages := s.receive(url, more...); len(messages) > 0 {
		s.Errorf("got %d messages (first %.40q), want none", len(messages), messages[0].text("Body"))
	}
}

// bodies checks the bodies of the messages, in order.
func (s *scene) bodies(messages []tree, want ...string) {
	s.Helper()
	var got []string
	for _, m := range messages {
		got = append(got, m.text("Body"))
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		s.Errorf("bodies: got %q, want %q", got, want)
	}
}

func (s *scene) delete(url, handle string) {
	s.Helper()
	s.ok("DeleteMessage", in{"QueueUrl": url, "ReceiptHandle": handle})
}

func (s *scene) change(url, handle string, seconds int) {
	s.Helper()
	s.ok("ChangeMessageVisibility", in{"QueueUrl": url, "ReceiptHandle": handle, "VisibilityTimeout": seconds})
}

// counts checks the three approximate numbers, which Holdfast keeps exact.
func (s *scene) counts(url string, visible, inFlight, delayed string) {
	s.Helper()
	s.hasAttributes(url,
		"ApproximateNumberOfMessages", visible,
		"ApproximateNumberOfMessagesNotVisible", inFlight,
		"ApproximateNumberOfMessagesDelayed", delayed)
}

// took checks how long f runs. The upper bounds of callers are generous: the
// machine may be busy.
func (s *scene) took(f func(), least, most time.Duration) {
	s.Helper()
	start := time.Now()
	f()
	if d := time.Since(start); d < least || d > most {
		s.Errorf("took %v, want %v to %v", d.Round(time.Millisecond), least, most)
	}
}

func handle(m tree) string { return m.text("ReceiptHandle") }

func text(value string) in { return in{"DataType": "String", "StringValue": value} }

func number(value string) in { return in{"DataType": "Number", "StringValue": value} }

func blob(value []byte) in { return in{"DataType": "Binary", "BinaryValue": value} }

// messageAttributes is the MessageAttributes member.
func messageAttributes(attributes in) in { return in{"MessageAttributes": attributes} }
