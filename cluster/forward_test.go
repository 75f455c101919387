package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
	"holdfast.internal/wal"
)

var someOrigin = raftfsm.Origin{Session: 1 << 60, Number: 300, Acks: []raftfsm.NumberRange{{First: 1, Last: 299}}}

func TestReceiveCallRoundTrip(t *testing.T) {
	want := receiveCall{
		proposalCall: proposalCall{left: 25 * time.Second, again: true},
		wait:         -time.Second, waited: 3 * time.Second, id: 1 << 40,
	}
	b := appendReceive(nil, want, someOrigin, []byte("command"))
	read := func(b []byte) (receiveCall, raftfsm.Operation, error) {
		r := callReader{data: b}
		call := receiveCall{proposalCall: r.head()}
		call.wait, call.waited, call.id = time.Duration(r.signed())*time.Millisecond, r.millis(), r.number()
		op, err := r.operation()
		return call, op, err
	}
	got, op, err := read(b)
	if err != nil || got != want || !reflect.DeepEqual(op.Origin, someOrigin) || string(op.Command) != "command" {
		t.Errorf("got %+v, %+v, %v; want %+v", got, op, err, want)
	}
	for n := range len(b) {
		if _, _, err := read(b[:n]); err == nil {
			t.Errorf("%d of %d bytes were read", n, len(b))
		}
	}
	b[0]++
	if _, _, err := read(b); !errors.Is(err, errForward) {
		t.Errorf("a format to come: got %v, want %v", err, errForward)
	}
}

func TestAnswerRoundTrip(t *testing.T) {
	g := fakeGateway("")
	content := func(b []byte, err error) raftfsm.Fetch { return func() ([]byte, error) { return b, err } }
	outcome := raftfsm.Outcome{
		Index:  7,
		Result: sqs.ReceiveMessageResult{Messages: []sqs.Received{{Body: 1}, {Body: 2}, {Body: 3}}},
		Bodies: []raftfsm.Fetch{content([]byte("one"), nil), content(nil, fmt.Errorf("read: %w", wal.ErrDamagedBody)), content(nil, nil)},
	}
	b := g.answer(&outcome, nil)
	got, _, err := readAnswer(b)
	if err != nil || got.Index != 7 || !reflect.DeepEqual(got.Result, outcome.Result) || len(got.Bodies) != 3 {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i, want := range []string{"one", "", ""} {
		b, err := got.Bodies[i]()
		if string(b) != want || errors.Is(err, wal.ErrDamagedBody) != (i == 1) {
			t.Errorf("content %d: got %q, %v, want %q", i, b, err, want)
		}
	}
	for n := range len(b) {
		if got, _, err := readAnswer(b[:n]); err == nil && len(got.Bodies) == 3 {
			t.Errorf("%d of %d bytes were read", n, len(b))
		}
	}
	outcome.Bodies[2] = content(nil, raftfsm.ErrNoBody)
	if _, _, err := readAnswer(g.answer(&outcome, nil)); err == nil || errors.Is(err, ErrNoLeader) {
		t.Errorf("got %v, want a fault", err)
	}
}

// fakeGateway is n1's, where raft knows a leader, or none.
func fakeGateway(leader string) *gateway {
	g := &gateway{node: "n1", leader: func() (peer.Target, uint64, bool) { return peer.Target{Name: leader}, 1, leader != "" }}
	g.reign.Store(&reign{route: route{leader: peer.Target{Name: "n3"}, known: true}}) // by the word of others
	return g
}

func TestAnsweredErrors(t *testing.T) {
	g := fakeGateway("n2")
	for _, test := range []struct {
		err, want error
		leader    string
	}{
		{ErrNoLeader, ErrNoLeader, "n2"},
		{errMoved, ErrNoLeader, "n2"},
		{ErrOutcomeUnknown, ErrOutcomeUnknown, ""},
		{ErrOverloaded, ErrOverloaded, ""},
	} {
		if _, leader, err := readAnswer(g.answer(nil, test.err)); !errors.Is(err, test.want) || leader != test.leader {
			t.Errorf("%v: got %v, leader %q", test.err, err, leader)
		}
	}
	for _, leader := range []string{"", "n1"} { // none, or itself, which does not serve yet
		if _, hint, _ := readAnswer(fakeGateway(leader).answer(nil, ErrNoLeader)); hint != "" {
			t.Errorf("raft knows %q as the leader: got hint %q, want none", leader, hint)
		}
	}
	if _, _, err := readAnswer(g.answer(nil, errors.New("disk on fire"))); err == nil || err.Error() != "leader answers: disk on fire" {
		t.Errorf("got %v", err)
	}
	for _, b := range [][]byte{nil, {0}, {99}, {byte(statusAnswered)}} {
		if _, _, err := readAnswer(b); err == nil {
			t.Errorf("%v was read", b)
		}
	}
}

// TestFailedCalls: what never left this process was not executed.
func TestFailedCalls(t *testing.T) {
	for _, test := range []struct{ err, want error }{
		{fmt.Errorf("call n2: %w: %w", peer.ErrNotSent, context.DeadlineExceeded), ErrNoLeader},
		{fmt.Errorf("call n2: %w", peer.ErrBroken), ErrOutcomeUnknown},
	} {
		if got := callError(test.err); !errors.Is(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.err, got, test.want)
		}
	}
}

// TestGrantedTurnThatWasNotUsed: when the leader says that it has not proposed the
// receive, nothing may have been executed.
func TestGrantedTurnThatWasNotUsed(t *testing.T) {
	g := fakeGateway("")
	for _, granted := range []bool{false, true} {
		r := &reception{gateway: g, numbering: numbering{origin: someOrigin, maybe: true}}
		v := visit{reception: r, granted: granted}
		if _, err := v.result(g.notLeader(), nil); !errors.Is(err, ErrNoLeader) || r.maybe == granted {
			t.Errorf("granted %v: got %v, maybe %v", granted, err, r.maybe)
		}
	}
}

func TestTurnRoundTrip(t *testing.T) {
	for _, want := range []turnAnswer{{}, {true, someOrigin}} {
		b := appendTurnAnswer(nil, want)
		if got := b[0] == 1; got != want.goOn {
			t.Errorf("got %v, want %v", got, want.goOn)
		}
		if !want.goOn {
			continue
		}
		op, err := raftfsm.DecodeOperation(b[1:])
		if err != nil || !reflect.DeepEqual(op.Origin, someOrigin) {
			t.Errorf("got %+v, %v", op.Origin, err)
		}
	}
	b := appendTurn(nil, turnCall{kind: newsTurn, id: 300, number: 400})
	if want := []byte{forwardFormat, byte(newsTurn), 0xac, 2, 0x90, 3}; !slices.Equal(b, want) {
		t.Errorf("got %v, want %v", b, want)
	}
}
