package cluster

import (
	"errors"
	"reflect"
	"testing"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
)

func TestSessionTellsAnswersOnce(t *testing.T) {
	s := &session{id: 1}
	begin := func(number uint64, acks ...raftfsm.NumberRange) raftfsm.Origin {
		t.Helper()
		o := s.begin(nil)
		want := raftfsm.Origin{Session: 1, Number: number, Acks: acks}
		if o.Number != number || len(o.Acks) != len(acks) || len(acks) > 0 && !reflect.DeepEqual(o, want) {
			t.Errorf("got %+v, want %+v", o, want)
		}
		return o
	}
	one, two, three := begin(1), begin(2), begin(3)
	s.end(three, true)
	s.end(one, true)
	four := begin(4, raftfsm.NumberRange{First: 1, Last: 1}, raftfsm.NumberRange{First: 3, Last: 3})
	five := begin(5)
	s.end(two, true)
	s.end(four, false) // nobody knows whether its acknowledgements were heard
	begin(6, raftfsm.NumberRange{First: 1, Last: 4})
	s.end(five, true)
	begin(7, raftfsm.NumberRange{First: 5, Last: 5})
}

func TestSessionBoundsAcks(t *testing.T) {
	s := &session{id: 1}
	var open []raftfsm.Origin
	for range 4 * maxAcks {
		open = append(open, s.begin(nil))
	}
	for i := 0; i < len(open); i += 2 {
		s.end(open[i], true)
	}
	for i, want := range []int{maxAcks, maxAcks, 0} {
		if got := len(s.begin(nil).Acks); got != want {
			t.Errorf("operation %d: got %d ranges, want %d", i, got, want)
		}
	}
}

func TestNoSessionHasNoNumbers(t *testing.T) {
	s := &session{}
	o := s.begin(nil)
	s.end(o, true)
	if o.Session != 0 || o.Number != 0 || len(s.answered) != 0 {
		t.Errorf("got %+v", o)
	}
}

// A session is given up once, by the first operation that was refused: those that
// are refused later must not take the next one away.
func TestSessionIsReplacedOnce(t *testing.T) {
	g := &gateway{renewed: make(chan struct{})}
	first, second := newSession(), newSession()
	g.replace(nil, first)
	_, renewed := g.current()
	g.replace(first, nil)
	select {
	case <-renewed:
	default:
		t.Error("nobody is told that the session has ended")
	}
	g.replace(nil, second)
	g.replace(first, nil)
	if got, _ := g.current(); got != second {
		t.Errorf("got %v, want the second session", got)
	}
}

// TestRefusalOfNumber: what certainly was not executed begins anew.
func TestRefusalOfNumber(t *testing.T) {
	for _, test := range []struct {
		reason      raftfsm.SessionReason
		maybe       bool
		want        error
		keepsNumber bool
		keepsThis   bool // session
	}{
		{raftfsm.SessionUnknown, false, errAnew, false, false},
		{raftfsm.SessionUnknown, true, ErrOutcomeUnknown, true, true},
		{raftfsm.NumberFinished, false, errAnew, false, true},
		{raftfsm.NumberFinished, true, ErrOutcomeUnknown, true, true},
		{raftfsm.SessionFull, false, ErrNoLeader, true, true},
		{raftfsm.SessionFull, true, ErrNoLeader, true, true},
	} {
		s := &session{id: 1}
		g := &gateway{opened: s, renewed: make(chan struct{})}
		n := numbering{session: s, origin: s.begin(nil), maybe: test.maybe}
		err := n.refusal(g, &raftfsm.Outcome{Err: &raftfsm.SessionError{Reason: test.reason}})
		now, _ := g.current()
		if !errors.Is(err, test.want) || (n.origin.Number == 1) != test.keepsNumber || (now == s) != test.keepsThis || (n.session == s) != test.keepsThis {
			t.Errorf("%v, maybe %v: got %v, number %d", test.reason, test.maybe, err, n.origin.Number)
		}
	}
	n := numbering{}
	for _, outcome := range []raftfsm.Outcome{{}, {Err: &sqs.Error{Code: sqs.OverLimit}}} {
		if err := n.refusal(nil, &outcome); err != nil {
			t.Errorf("got %v for an answer", err)
		}
	}
}
