package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"holdfast.internal/httpapi/wire"
	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// maxSubject is the longest subject of a message, in characters.
const maxSubject = 100

// draft is a message to publish as it was read.
type draft struct {
	message sns.Message
	whole   []byte // the parameter Message

	// A refusal fails the whole request, a failure only the entry of a batch.
	refusal, failure *sns.Error
}

// readDraft reads a message to publish to a topic, and checks what needs no state.
// The errors of AWS that a batch has for single entries are failures (AWS recording
// test_publish_batch_messages_from_sns_to_sqs).
func (r *request) readDraft(in wire.Input, topic sns.TopicKey, path string, found *violations) *draft {
	d := &draft{}
	var given bool
	if d.whole, given = in.Bytes("Message"); !given {
		found.missing(path + "message")
	}
	structure, structured := in.Text("MessageStructure")
	subject, hasSubject := in.Text("Subject")
	d.message = sns.Message{
		ID: r.server.config.NewID(), TopicARN: sns.TopicARN(r.settings.Region, topic), Subject: subject,
		TraceHeader: r.traceHeader(),
	}
	d.message.Attributes, d.refusal = readAttributes(in, path, found)
	d.readIDs(in)
	switch {
	case len(d.whole) == 0:
		d.fail(sns.Invalid("Empty message"))
	case hasSubject && !isSubject(subject):
		d.fail(sns.Invalid("Subject"))
	case structured && structure != "json":
		d.refuse(sns.Invalid("MessageStructure"))
	case structured:
		d.readStructure()
	default:
		d.message.Text = d.whole
	}
	return d
}

// refuse notes the first error of the whole request.
func (d *draft) refuse(err *sns.Error) {
	if d.refusal == nil {
		d.refusal = err
	}
}

// fail notes the first error of the entry.
func (d *draft) fail(err *sns.Error) {
	if d.failure == nil {
		d.failure = err
	}
}

func isSubject(text string) bool {
	control := strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
	return text != "" && utf8.RuneCountInString(text) <= maxSubject && !control
}

// readIDs reads the ids of group and deduplication. Whether the topic wants them is
// for the state to say.
func (d *draft) readIDs(in wire.Input) {
	for _, id := range []struct {
		name string
		into *string
	}{
		{"MessageGroupId", &d.message.GroupID},
		{"MessageDeduplicationId", &d.message.DeduplicationID},
	} {
		text, ok := in.Text(id.name)
		if !ok {
			continue
		}
		if refusal := sns.ValidateID(id.name, text); refusal != nil {
			d.refuse(refusal)
		}
		*id.into = text
	}
}

// readStructure takes a message apart that says another thing to each protocol. Of
// a repeated key the last one counts; a value that is no text says nothing (AWS
// recordings test_message_structure_json_exc, test_message_structure_json_to_sqs).
func (d *draft) readStructure() {
	var texts map[string]json.RawMessage
	if json.Unmarshal(d.whole, &texts) != nil || texts == nil {
		d.fail(sns.Invalid("Message Structure - JSON message body failed to parse"))
		return
	}
	text, ok := asText(texts["default"])
	if !ok {
		d.refuse(sns.Invalid("Message Structure - No default entry in JSON message body"))
		return
	}
	d.message.Text = text
	for p := sns.Application; p <= sns.SQS; p++ {
		if text, ok := asText(texts[p.String()]); ok {
			d.message.Texts = append(d.message.Texts, sns.ProtocolText{Protocol: p, Text: text})
		}
	}
}

func asText(raw json.RawMessage) ([]byte, bool) {
	var text *string
	if json.Unmarshal(raw, &text) != nil || text == nil {
		return nil, false
	}
	return []byte(*text), true
}

// finish makes the entry of the command, and the content that travels beside it.
func (d *draft) finish(topic sns.TopicKey) (sns.PublishEntry, []byte) {
	d.message.Unfit = !sqs.ValidText(d.message.TextFor(sns.SQS))
	e := sns.PublishEntry{
		MessageID: d.message.ID, Size: sns.Size(d.whole, d.message.Attributes),
		GroupID: d.message.GroupID, DeduplicationID: d.message.DeduplicationID,
	}
	if sns.IsFIFO(topic.Name) && e.DeduplicationID == "" {
		e.SHA256 = sha256.Sum256(d.whole)
		d.message.DeduplicationID = hex.EncodeToString(e.SHA256[:])
	}
	return e, sns.AppendMessage(nil, &d.message)
}

// publishTarget returns the topic to publish to; false if the message is for a
// phone, and published already.
func (r *request) publishTarget() (topic sns.TopicKey, toTopic bool, err error) {
	var given []string
	for _, name := range []string{"TopicArn", "TargetArn", "PhoneNumber"} {
		if _, ok := r.in.Text(name); ok {
			given = append(given, name)
		}
	}
	switch {
	case r.in.Err() != nil:
		return topic, false, malformed(r.in.Err())
	case len(given) == 0:
		return topic, false, sns.Invalid("TopicArn or TargetArn Reason: no value for required parameter")
	case len(given) > 1:
		return topic, false, sns.Invalid("Must specify exactly one of TopicArn, TargetArn, PhoneNumber")
	case given[0] == "PhoneNumber":
		return topic, false, r.publishToPhone()
	}
	text, err := r.arnParameter(given[0])
	if err != nil {
		return topic, false, err
	}
	if a, _ := sns.ParseARN(text); given[0] == "TargetArn" && strings.HasPrefix(a.Resource, "endpoint/") {
		return topic, false, sns.Invalid("TargetArn Reason: No endpoint found for the target arn specified")
	}
	topic, err = r.topicParameter(given[0])
	return topic, true, err
}

// publishToPhone accepts a text message, which goes to the log and no further.
func (r *request) publishToPhone() error {
	phone, _ := r.in.Text("PhoneNumber")
	if !r.caller.signed {
		return errUnsigned
	}
	if _, ok := sns.PhoneNumber(phone); !ok {
		return sns.Invalid("PhoneNumber Reason: " + phone + " is not valid to publish to")
	}
	var found violations
	d := r.readDraft(r.in, sns.TopicKey{}, "", &found)
	if err := d.err(r, found); err != nil {
		return err
	}
	r.server.config.Logger.Info("text message accepted, and not sent", "account", r.caller.account, "message_bytes", len(d.whole))
	r.out.UUID("MessageId", d.message.ID)
	return nil
}

// err is what is wrong with a message that is published alone.
func (d *draft) err(r *request, found violations) error {
	switch {
	case r.in.Err() != nil:
		return malformed(r.in.Err())
	case found.err() != nil:
		return found.err()
	case d.failure != nil:
		return d.failure
	case d.refusal != nil:
		return d.refusal
	}
	return nil
}

func publish(r *request) error {
	topic, toTopic, err := r.publishTarget()
	if err != nil || !toTopic {
		return err
	}
	var found violations
	d := r.readDraft(r.in, topic, "", &found)
	if err := d.err(r, found); err != nil {
		if len(found) > 0 {
			return err // the framework looks at nothing else
		}
		return r.refuseTo(topic, err)
	}
	entry, content := d.finish(topic)
	done, err := inquire[sns.PublishBatchResult](r, sns.PublishBatch{Topic: topic, Entries: []sns.PublishEntry{entry}, Single: true}, content)
	if err != nil {
		return err
	}
	r.writePublished(topic, &done.Entries[0])
	return nil
}

func (r *request) writePublished(topic sns.TopicKey, done *sns.PublishResult) {
	r.out.UUID("MessageId", done.MessageID)
	if sns.IsFIFO(topic.Name) {
		r.out.Text("SequenceNumber", sns.SequenceText(done.SequenceNumber))
	}
}
