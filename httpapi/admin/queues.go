package admin

import (
	"net/http"

	"holdfast.internal/sqs"
)

// Queue is an element of GET /queues, and the answer of
// GET /queues/{account}/{name}. Counters run since the queue was made.
type Queue struct {
	Account       string `json:"account"`
	Name          string `json:"name"`
	Incarnation   uint64 `json:"incarnation"`
	Visible       int    `json:"visible"`
	InFlight      int    `json:"in_flight"`
	Delayed       int    `json:"delayed"`
	OldestMS      int64  `json:"oldest_ms"` // age of the oldest message; 0 without one
	Sent          uint64 `json:"sent"`
	SentBytes     uint64 `json:"sent_bytes"`
	Received      uint64 `json:"received"`
	Deleted       uint64 `json:"deleted"`
	EmptyReceives uint64 `json:"empty_receives"` // of this node, since it began
	Damaged       bool   `json:"damaged"`
}

func (s *server) getQueues(w http.ResponseWriter, _ *http.Request) {
	metrics := s.Node.Metrics()
	s.answer(w, each(readQueues(s.Node, &metrics), newQueue))
}

func (s *server) getQueue(w http.ResponseWriter, r *http.Request) {
	key := sqs.QueueKey{Account: r.PathValue("account"), Name: r.PathValue("name")}
	metrics := s.Node.Metrics()
	for _, q := range readQueues(s.Node, &metrics) {
		if q.Queue == key {
			s.answer(w, newQueue(q))
			return
		}
	}
	s.refuse(w, http.StatusNotFound, "there is no such queue")
}

func newQueue(q queueReading) Queue {
	return Queue{
		Account:       q.Queue.Account,
		Name:          q.Queue.Name,
		Incarnation:   q.Incarnation,
		Visible:       q.Visible,
		InFlight:      q.InFlight,
		Delayed:       q.Delayed,
		OldestMS:      q.age.Milliseconds(),
		Sent:          q.Sent,
		SentBytes:     q.SentBytes,
		Received:      q.Received,
		Deleted:       q.Deleted,
		EmptyReceives: q.emptyReceives,
		Damaged:       q.Damaged,
	}
}
