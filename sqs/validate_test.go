package sqs_test

import (
	"strings"
	"testing"

	"holdfast.internal/sqs"
)

// TestValidText tries every character class at every place of a word, since
// text is looked at eight bytes at a time.
func TestValidText(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"", true},
		{"\t\n\r", true},
		{" ", true},
		{"~\x7f", true},
		{"é€\U0001F600", true},
		{"\uD7FF\uE000\uFFFD", true},
		{"\U0010FFFF", true},
		{"\x00", false},
		{"\b", false},
		{"\x1f", false},
		{"\uFFFE", false},
		{"\uFFFF", false},
		{"\xff", false},
		{"\x80", false},
		{"\xc3", false},
		{"\xed\xa0\x80", false},
		{"\xf4\x90\x80\x80", false},
	} {
		for before := range 17 {
			for _, after := range []int{0, 1, 7, 8, 9} {
				text := strings.Repeat("A", before) + tt.text + strings.Repeat("é", after)
				if got := sqs.ValidText([]byte(text)); got != tt.want {
					t.Fatalf("%q: got %v, want %v", text, got, tt.want)
				}
			}
		}
	}
}

func TestValidateQueueName(t *testing.T) {
	const standard = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
	const fifo = "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length."
	for _, tt := range []struct {
		name string
		fifo bool
		want string
	}{
		{"a-B_9", false, ""},
		{strings.Repeat("a", 80), false, ""},
		{strings.Repeat("a", 81), false, standard},
		{"x.fifo", false, standard},
		{"a/b", false, standard},
		{"é", false, standard},
		{"a.b", false, standard},
		{"", false, "Queue name cannot be empty"},
		{"", true, "Queue name cannot be empty"},
		{"x.fifo", true, ""},
		{"x", true, fifo},
		{".fifo", true, fifo},
		{"a b.fifo", true, fifo},
		{strings.Repeat("a", 75) + ".fifo", true, ""},
		{strings.Repeat("a", 76) + ".fifo", true, fifo},
	} {
		err := sqs.ValidateQueueName(tt.name, tt.fifo)
		if got := message(err); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestValidateID(t *testing.T) {
	for _, tt := range []struct{ id, want string }{
		{"a!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~Z9", ""},
		{strings.Repeat("a", 128), ""},
		{"", "Value  for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length."},
		{"group 123", "Value group 123 for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length."},
		{"é", "Value é for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length."},
	} {
		if got := message(sqs.ValidateID("MessageGroupId", tt.id)); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.id, got, tt.want)
		}
	}
	if sqs.ValidID(strings.Repeat("a", 129)) {
		t.Error("an id of 129 characters is valid")
	}
}

func TestValidateBatch(t *testing.T) {
	const entry = "SendMessageBatchRequestEntry"
	for _, tt := range []struct {
		name string
		err  *sqs.Error
		want string
	}{
		{"none", sqs.ValidateBatchCount(entry, 0), "EmptyBatchRequest: There should be at least one SendMessageBatchRequestEntry in the request."},
		{"ten", sqs.ValidateBatchCount(entry, 10), ""},
		{"twenty", sqs.ValidateBatchCount(entry, 20), "TooManyEntriesInBatchRequest: Maximum number of entries per request are 10. You have sent 20."},
		{"ids", sqs.ValidateBatchIDs([]string{"a-B_9", strings.Repeat("a", 80)}), ""},
		{"colon", sqs.ValidateBatchIDs([]string{"invalid:id"}), badID},
		{"empty", sqs.ValidateBatchIDs([]string{""}), badID},
		{"long", sqs.ValidateBatchIDs([]string{strings.Repeat("a", 81)}), badID},
		{"repeated", sqs.ValidateBatchIDs([]string{"id_1", "id_2", "id_2", "id_1"}), "BatchEntryIdsNotDistinct: Id id_2 repeated."},
		{"size", sqs.BatchTooLong(1048577), "BatchRequestTooLong: Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."},
	} {
		got := ""
		if tt.err != nil {
			got = tt.err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

const badID = "InvalidBatchEntryId: A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."

func TestValidateDelay(t *testing.T) {
	for _, tt := range []struct {
		seconds int64
		fifo    bool
		want    string
	}{
		{0, false, ""},
		{900, false, ""},
		{0, true, ""},
		{-1, false, "Value -1 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."},
		{901, false, "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."},
		{2, true, "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type."},
	} {
		if got := message(sqs.ValidateDelay(tt.seconds, tt.fifo)); got != tt.want {
			t.Errorf("%d: got %q, want %q", tt.seconds, got, tt.want)
		}
	}
}

func TestValidateTags(t *testing.T) {
	many := make([]sqs.Tag, 51)
	for i := range many {
		many[i].Key = strings.Repeat("k", i+1)
	}
	for _, tt := range []struct {
		name string
		tags []sqs.Tag
		want string
	}{
		{"fifty", many[:50], ""},
		{"fifty-one", many, "Too many tags added for queue q."},
		{"empty value", []sqs.Tag{{Key: "tag3"}}, ""},
		{"alphabet", []sqs.Tag{{Key: "ä 1_.:/=+-@", Value: "ä 1_.:/=+-@"}}, ""},
		{"no key", []sqs.Tag{{}}, "Tag keys must be between 1 and 128 characters in length."},
		{"long key", []sqs.Tag{{Key: strings.Repeat("é", 129)}}, "Tag keys must be between 1 and 128 characters in length."},
		{"longest", []sqs.Tag{{Key: strings.Repeat("é", 128), Value: strings.Repeat("é", 256)}}, ""},
		{"long value", []sqs.Tag{{Key: "k", Value: strings.Repeat("é", 257)}}, "Tag values must be between 0 and 256 characters in length."},
		{"character", []sqs.Tag{{Key: "a!"}}, "Tag keys may only contain unicode letters, digits, whitespace, or one of these symbols: _ . : / = + - @"},
		{"value character", []sqs.Tag{{Key: "a", Value: "?"}}, "Tag values may only contain unicode letters, digits, whitespace, or one of these symbols: _ . : / = + - @"},
		{"reserved", []sqs.Tag{{Key: "AWS:x"}}, "Tag keys must not begin with aws:, which is reserved for system use."},
	} {
		if got := message(sqs.ValidateTags("q", tt.tags)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// message returns the text of an error, and "" for none.
func message(err *sqs.Error) string {
	if err == nil {
		return ""
	}
	return err.Message
}

func BenchmarkValidText(b *testing.B) {
	text := []byte(strings.Repeat("x", 1024))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if !sqs.ValidText(text) {
			b.Fatal("not valid")
		}
	}
}

func TestValidateBody(t *testing.T) {
	for body, want := range map[string]sqs.Code{"": sqs.MissingParameter, "x": "", "\x00": sqs.InvalidMessageContents} {
		got := sqs.Code("")
		if err := sqs.ValidateBody([]byte(body)); err != nil {
			got = err.Code
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}
