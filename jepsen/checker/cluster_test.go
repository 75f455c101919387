package checker_test

import "holdfast.internal/jepsen/history"

// fault says that at a time something was broken in a cluster.
func (s *story) fault(at float64) {
	s.cluster = true
	s.add(history.Operation{Kind: history.Fault, Text: "cut"}, at, at, history.OK)
}

// talesOfClusters are about receives that nodes pass on to each other, and that may
// have been started anew.
func talesOfClusters() []tale {
	return []tale{
		{"a count that jumps over a receive that was started anew", func(s *story) {
			b := s.send("a", 1, 2)
			s.fault(3)
			s.receive(4, 7, 3*second, out("a", b, 2))
			s.drain(30, out("a", b, 3))
		}, ""},
		{"a receive that was started anew and found nothing any more", func(s *story) {
			a, b := s.send("a", 1, 2), s.send("b", 1, 2)
			s.fault(3)
			s.receive(4, 7, 3*second)
			s.drain(30, out("a", a, 2), out("b", b, 2))
		}, ""},
		{"a receive that was started anew twice", func(s *story) {
			b := s.send("a", 1, 2)
			s.fault(3)
			s.receive(4, 10, 3*second, out("a", b, 3))
			s.drain(30, out("a", b, 4))
		}, ""},
		{"a lease of an unseen hand-out that an older handle ended", func(s *story) {
			b := s.send("a", 1, 2)
			s.receive(2, 3, second, out("a", b, 1))
			s.fault(3)
			s.receive(4, 6, 3*second)
			s.change("a#1", 0, 5, 5.5, history.OK)
			s.drain(30, out("a", b, 3))
		}, ""},
		{"a receive that took less than its leases", func(s *story) {
			b := s.send("a", 1, 2)
			s.fault(3)
			s.receive(4, 6.9, 3*second, out("a", b, 2))
			s.drain(30, out("a", b, 3))
		}, "P6-count"},
		{"a receive that was started anew cannot hide two hand-outs", func(s *story) {
			b := s.send("a", 1, 2)
			s.fault(3)
			s.receive(4, 9.9, 3*second, out("a", b, 3))
			s.drain(30, out("a", b, 4))
		}, "P6-count"},
		{"a receive that was started anew has room for as many as it asked for", func(s *story) {
			a, b := s.send("a", 1, 2), s.send("b", 1, 2)
			s.fault(3)
			s.receive(4, 7, 3*second).Max = 1
			s.drain(30, out("a", a, 2), out("b", b, 2))
		}, "P6-count"},
		{"a receive that was over before", func(s *story) {
			b := s.send("a", 1, 2)
			s.fault(3)
			s.receive(4, 7, 3*second)
			s.handout("a", b, 1, 7.5, 8)
			s.drain(30, out("a", b, 3))
		}, "P6-count"},
		{"a receive that began afterwards", func(s *story) {
			b := s.send("a", 1, 2)
			s.fault(3)
			s.receive(4, 4.5, second, out("a", b, 2))
			s.receive(5, 8, 3*second)
			s.drain(30, out("a", b, 3))
		}, "P6-count"},
		{"a receive that took long without a fault", func(s *story) {
			s.cluster = true
			b := s.send("a", 1, 2)
			s.receive(4, 7, 3*second, out("a", b, 2))
			s.drain(30, out("a", b, 3))
		}, "P6-count"},
		{"a receive that took long at a node alone", func(s *story) {
			b := s.send("a", 1, 2)
			s.fault(3)
			s.cluster = false
			s.receive(4, 7, 3*second, out("a", b, 2))
			s.drain(30, out("a", b, 3))
		}, "P6-count"},
		{"a count that starts again beside a receive that was started anew", func(s *story) {
			b := s.send("a", 1, 2)
			s.fault(3)
			s.receive(4, 7, 3*second, out("a", b, 1))
			d := out("a", b, 1)
			d.Handle = "again"
			s.drain(30, d)
		}, "P6-count"},
	}
}
