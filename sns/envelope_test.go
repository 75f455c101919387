package sns

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestEnvelopeCharacters: the document has only characters that a message of a queue
// may have (SQS API reference, SendMessage), whatever the publish has, and says the
// same. Others do not survive XML, and then the digest of the body is wrong.
func TestEnvelopeCharacters(t *testing.T) {
	const text = "a\x00\x0b\x1f\x7f\u0085 \"\\/\r\n\t é \ufffd\ufffe\uffff \U0001F600\U0001FFFE"
	stored := Stored{Message: Message{
		Subject: text, Text: []byte(text),
		Attributes: []MessageAttribute{{Name: "a", DataType: "String", Value: []byte(text)}},
	}}
	document := AppendEnvelope(nil, &stored, &Envelope{Protocol: SQS})
	bad := func(r rune) bool { return r < ' ' && r != '\n' || r == 0xFFFE || r == 0xFFFF }
	if i := strings.IndexFunc(string(document), bad); i >= 0 {
		t.Errorf("character %q at %d in %q", document[i:i+3], i, document)
	}
	var got struct {
		Subject, Message  string
		MessageAttributes map[string]struct{ Value string }
	}
	if err := json.Unmarshal(document, &got); err != nil {
		t.Fatal(err)
	}
	if got.Subject != text || got.Message != text || got.MessageAttributes["a"].Value != text {
		t.Errorf("got %+q, want %+q", got, text)
	}
}
