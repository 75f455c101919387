package sqs_test

import (
	"bytes"
	"reflect"
	"testing"

	"holdfast.internal/sqs"
)

func contents() []sqs.Content {
	return []sqs.Content{
		{Body: []byte("x")},
		{
			MessageID: sqs.MessageID{1, 2, 15: 9}, SenderID: "000000000000", TraceHeader: "Root=1", GroupID: "g",
			DeduplicationID: "d", Body: []byte("hello"), BodyMD5: [16]byte{3, 15: 4}, AttributesMD5: [16]byte{5, 15: 6},
			Attributes: []sqs.MessageAttribute{binaryAttribute("blob", "\x00\x01"), stringAttribute("count", "Number.int", "3")},
		},
		{Body: bytes.Repeat([]byte("é"), 1<<19), GroupID: string(bytes.Repeat([]byte("g"), 128))},
	}
}

func TestContentRoundTrip(t *testing.T) {
	for _, want := range contents() {
		record := sqs.AppendContent(nil, &want)
		if len(record) != sqs.ContentSize(&want) {
			t.Errorf("got a record of %d bytes, ContentSize says %d", len(record), sqs.ContentSize(&want))
		}
		got, err := sqs.ParseContent(record)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

// A record cut anywhere in its head is refused, and none makes the reader run
// past its end.
func TestParseContentRefuses(t *testing.T) {
	c := contents()[1]
	record := sqs.AppendContent(nil, &c)
	for n := range len(record) - len(c.Body) {
		if got, err := sqs.ParseContent(record[:n:n]); err == nil {
			t.Errorf("cut to %d bytes: got %+v, want an error", n, got)
		}
	}
	record[0]++
	if _, err := sqs.ParseContent(record); err == nil {
		t.Error("another version was read")
	}
}

func FuzzParseContent(f *testing.F) {
	for _, c := range contents()[:2] {
		f.Add(sqs.AppendContent(nil, &c))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		c, err := sqs.ParseContent(record)
		if err != nil {
			return
		}
		if again := sqs.AppendContent(nil, &c); !bytes.Equal(again, record) {
			t.Errorf("got %x, want %x", again, record)
		}
	})
}

func BenchmarkContent(b *testing.B) {
	c := sqs.Content{SenderID: "000000000000", Body: bytes.Repeat([]byte("x"), 1024)}
	b.ReportAllocs()
	for b.Loop() {
		record := sqs.AppendContent(make([]byte, 0, sqs.ContentSize(&c)), &c)
		if _, err := sqs.ParseContent(record); err != nil {
			b.Fatal(err)
		}
	}
}
