package sqs_test

import (
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// A page ends after 10,000 messages that are of another state, and says where to
// go on.
func TestPeekIsBounded(t *testing.T) {
	const messages = 12_000
	s := sqs.New()
	at := sqs.Moment{Now: scriptStart, NextBody: 1}
	s.Apply(at, sqs.CreateQueue{Queue: key("q")})
	for range messages / 10 {
		s.Apply(at, sqs.SendMessageBatch{Queue: key("q"), Entries: make([]sqs.SendEntry, 10)})
		at.NextBody += 10
	}
	for range messages / 10 {
		s.Apply(at, sqs.ReceiveMessage{Queue: key("q"), MaxMessages: 10, VisibilityTimeout: time.Minute})
	}
	page, _ := s.Peek(key("q"), at.Now, sqs.Visible, 0, 5)
	if len(page.Messages) != 0 || !page.More || page.Next != 10_000 {
		t.Errorf("got %d messages, next %d, more %t; want none, 10000, true", len(page.Messages), page.Next, page.More)
	}
	s.Apply(at, sqs.SendMessageBatch{Queue: key("q"), Entries: make([]sqs.SendEntry, 1)})
	page, _ = s.Peek(key("q"), at.Now, sqs.Visible, 0, 5)
	if len(page.Messages) != 0 || page.Next != 10_000 {
		t.Errorf("with a visible message at the end: got %+v, want none before the second page", page)
	}
	page, _ = s.Peek(key("q"), at.Now, sqs.Visible, page.Next, 5)
	if len(page.Messages) != 1 || page.More || page.Messages[0].Sequence != messages+1 {
		t.Errorf("second page: got %+v, want the message at the end", page)
	}
}
