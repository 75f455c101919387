package checker_test

import (
	"fmt"

	"holdfast.internal/jepsen/history"
)

// post adds a send of message id to a group; the second letter of the id is its
// deduplication id. It returns what a first hand-out of the message shows.
func (s *story) post(id, group string, sequence int, call, ret float64) history.Delivery {
	d := out(id, s.body(), 1)
	d.Group, d.DedupID, d.Sequence = group, id[1:], history.Sequence(fmt.Sprint(sequence))
	s.add(history.Operation{
		Kind: history.Send, Body: d.Body, Delay: history.QueueDefault, Group: d.Group, DedupID: d.DedupID,
		MessageID: id, MD5: d.MD5, Sequence: d.Sequence,
	}, call, ret, history.OK)
	return d
}

// repost adds another send with the deduplication id of d, that got its id.
func (s *story) repost(d history.Delivery, call, ret float64) *history.Operation {
	body := s.body()
	return s.add(history.Operation{
		Kind: history.Send, Body: body, Delay: history.QueueDefault, Group: d.Group, DedupID: d.DedupID,
		MessageID: d.MessageID, MD5: sum(body), Sequence: d.Sequence,
	}, call, ret, history.OK)
}

func (s *story) unanswer(o *history.Operation) {
	o.Outcome, o.Return, o.MessageID, o.Sequence = history.Info, history.Never, "", ""
}

func again(d history.Delivery, count int) history.Delivery {
	d.Count, d.Handle = count, fmt.Sprintf("%s#%d", d.MessageID, count)
	return d
}

func fifo(tell func(*story)) func(*story) {
	return func(s *story) {
		s.queue = "q.fifo"
		tell(s)
	}
}

func talesOfFIFO() []tale {
	return []tale{
		{"FIFO: all is well", fifo(func(s *story) {
			a, b, c := s.post("1a", "g", 1, 1, 2), s.post("1b", "g", 2, 3, 4), s.post("1c", "h", 3, 3, 5)
			s.repost(a, 6, 7)
			s.receive(8, 9, history.QueueDefault, a, b)
			s.delete("1a#1", 10, 11, history.OK)
			s.receive(12, 13, history.QueueDefault, c)
			s.drain(30, again(b, 2), again(c, 2))
		}), ""},
		{"a group that is out of order in an answer", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("1b", "g", 2, 3, 4)
			s.drain(30, b, a)
		}), "P8-order"},
		{"groups do not order each other", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("1b", "h", 2, 3, 4)
			s.drain(30, b, a)
		}), ""},
		{"a message before the one that precedes it", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("1b", "g", 2, 3, 4)
			s.receive(5, 6, history.QueueDefault, b)
			s.delete("1b#1", 7, 8, history.OK)
			s.drain(30, a)
		}), "P8-order"},
		{"a message while the one that precedes it is in flight", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("1b", "g", 2, 3, 4)
			s.receive(5, 6, history.QueueDefault, a)
			s.receive(7, 8, history.QueueDefault, b)
			s.drain(30, again(a, 2), again(b, 2))
		}), "P8-order"},
		{"a message when the one that precedes it may be deleted", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("1b", "g", 2, 3, 4)
			s.receive(5, 6, history.QueueDefault, a)
			s.delete("1a#1", 6.5, 0, history.Info)
			s.receive(7, 8, history.QueueDefault, b)
			s.drain(30, again(b, 2))
		}), ""},
		{"a delete that comes after the hand-out behind it", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("1b", "g", 2, 3, 4)
			s.receive(5, 6, history.QueueDefault, a)
			s.receive(7, 8, history.QueueDefault, b)
			s.delete("1a#1", 9, 10, history.OK)
			s.drain(30, again(b, 2))
		}), "P8-order"},
		{"two messages of an id in one window", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("2a", "g", 2, 20, 20.9)
			s.drain(30, a, b)
		}), "P9-dedup"},
		{"a new message after the window", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("2a", "g", 2, 20, 21)
			s.drain(30, a, b)
		}), ""},
		{"two messages of an id, one of them of an unknown send", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.unanswer(&s.operations[0])
			b := s.post("2a", "g", 2, 20, 20.9)
			s.drain(30, a, b)
		}), "P9-dedup"},
		{"an unknown send may have come late", fifo(func(s *story) {
			a := s.post("1a", "g", 2, 1, 2)
			s.unanswer(&s.operations[0])
			b := s.post("2a", "g", 1, 5, 6)
			s.drain(30, b, a)
		}), ""},
		{"two messages of an id in two groups", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("2a", "h", 2, 3, 4)
			s.drain(30, a, b)
		}), "P9-dedup"},
		{"ids by group", func(s *story) {
			s.queue = "h.fifo"
			a, b := s.post("1a", "g", 1, 1, 2), s.post("2a", "h", 2, 3, 4)
			s.drain(30, a, b)
		}, ""},
		{"a repeated send to another group", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.repost(a, 3, 4).Group = "h"
			b := s.post("1b", "h", 2, 5, 6)
			s.receive(7, 8, history.QueueDefault, b)
			s.drain(30, a, again(b, 2))
		}), ""},
		{"a message whose group nobody knows keeps nothing back", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.repost(a, 3, 4).Group = "h"
			s.drain(30, s.post("1b", "g", 2, 5, 6), s.post("1c", "h", 3, 7, 8))
		}), "P1-loss"},
		{"a repeated send to another group that is taken for the same where ids are by group", func(s *story) {
			s.queue = "h.fifo"
			a := s.post("1a", "g", 1, 1, 2)
			s.repost(a, 3, 4).Group = "h"
			s.drain(30, a)
		}, "P9-dedup"},
		{"a repeated send after the window", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.repost(a, 24.5, 25)
			s.drain(30, a)
		}), "P9-dedup"},
		{"a repeated send that may be within the window", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.repost(a, 22.5, 25)
			s.drain(30, a)
		}), ""},
		{"a repeated send with another sequence number", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.repost(a, 3, 4).Sequence = "2"
			s.drain(30, a)
		}), "P17-sequence"},
		{"a message with another sequence number than its send", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			a.Sequence = "2"
			s.drain(30, a)
		}), "P17-sequence"},
		{"one sequence number for two messages", fifo(func(s *story) {
			a, b := s.post("1a", "g", 1, 1, 2), s.post("1b", "h", 1, 1, 2)
			s.drain(30, a, b)
		}), "P17-sequence"},
		{"a sequence number that goes back", fifo(func(s *story) {
			a, b := s.post("1a", "g", 10, 1, 2), s.post("1b", "h", 9, 3, 4)
			s.drain(30, a, b)
		}), "P17-sequence"},
		{"sequence numbers of sends at the same time", fifo(func(s *story) {
			a, b := s.post("1a", "g", 10, 1, 4), s.post("1b", "h", 9, 3, 5)
			s.drain(30, a, b)
		}), ""},
		{"a repeated send that an unknown one came before", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.unanswer(&s.operations[0])
			b := s.post("1b", "g", 2, 3, 4)
			s.repost(a, 5, 6)
			s.drain(30, a, b)
		}), ""},
		{"a message in another group than it was sent to", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			a.Group = "h"
			s.drain(30, a)
		}), "P2-phantom"},
		{"a live handle that is refused", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.receive(3, 4, history.QueueDefault, a)
			s.delete("1a#1", 5, 12, history.Fail).Status = 400
			s.drain(30, again(a, 2))
		}), "P5-handle"},
		{"a handle that is refused when its lease may be over", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.receive(3, 4, history.QueueDefault, a)
			s.delete("1a#1", 5, 13.5, history.Fail).Status = 400
			s.change("1a#1", second, 5, 13.5, history.Fail).Status = 400
			s.drain(30, again(a, 2))
		}), ""},
		{"a handle that acts after its lease", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.receive(3, 4, history.QueueDefault, a)
			s.delete("1a#1", 17, 18, history.OK)
			s.drain(30)
		}), "P5-handle"},
		{"a handle whose lease an attempt without an answer may have begun anew", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.add(history.Operation{Kind: history.Receive, Max: 1, Visibility: history.QueueDefault, Attempt: "t"}, 2.5, 0, history.Info)
			s.receive(3, 4, history.QueueDefault, a).Attempt = "t"
			s.delete("1a#1", 17, 18, history.OK)
			s.drain(30)
		}), ""},
		{"a handle that acts on the next hand-out", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.receive(3, 4, history.QueueDefault, a)
			s.receive(14, 14.1, history.QueueDefault, again(a, 2))
			s.delete("1a#1", 14.2, 14.3, history.OK)
			s.drain(30)
		}), "P5-handle"},
		{"a delete by an old handle of what was deleted", fifo(func(s *story) {
			a := s.post("1a", "g", 1, 1, 2)
			s.receive(3, 4, history.QueueDefault, a)
			s.receive(14, 14.1, history.QueueDefault, again(a, 2))
			s.delete("1a#2", 14.2, 14.3, history.OK)
			s.delete("1a#1", 14.4, 14.5, history.OK)
			s.drain(30)
		}), ""},
	}
}
