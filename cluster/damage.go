package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"holdfast.internal/cluster/peer"
	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
	"holdfast.internal/wal"
)

// damage is what a node does about bodies that are damaged on its disk. It gets
// them from other members, by number, since a number stands for the same bytes on
// all of them. If every member says that it has none, the message is given up by an
// entry: from then on it is handed out by nobody. As long as one does not answer,
// the message stays, and is received again when its lease ends.
type damage struct {
	bodies raftfsm.Bodies
	repair func(number uint64, body []byte) (kept bool, err error) // nil: in memory
	next   func() uint64                                           // the first number that no body has yet
	others func() []peer.Target
	call   func(ctx context.Context, to peer.Target, method byte, request []byte) ([]byte, error)
	do     func(context.Context, raftfsm.Command) (raftfsm.Outcome, error)
	log    *slog.Logger
}

// bodyTimeout is how long a member may take to answer for a body.
const bodyTimeout = 2 * time.Second

// The request for a body is a format and its number; the answer is a bodyState,
// and the body if there is one.
const bodyFormat = 1

// bodyState is what a member says of a body.
type bodyState byte

const (
	bodyUnknown bodyState = iota // it does not answer, or has not come as far in the log
	bodyIntact
	bodyDamaged // or gone
)

// shared are the bodies for the machine: to read one that is damaged is to get it
// from another member.
func (d *damage) shared() raftfsm.Bodies {
	if len(d.others()) == 0 || d.repair == nil {
		return d.bodies
	}
	return sharedBodies{d.bodies, d}
}

// sharedBodies are bodies with damage in mind.
type sharedBodies struct {
	raftfsm.Bodies
	damage *damage
}

// Pin implements raftfsm.Bodies.
func (b sharedBodies) Pin(number uint64) (func() ([]byte, error), bool) {
	read, found := b.Bodies.Pin(number)
	if !found {
		return nil, false
	}
	return func() ([]byte, error) {
		body, err := read()
		if errors.Is(err, wal.ErrDamagedBody) {
			return b.damage.recover(number, err)
		}
		return body, err
	}, true
}

// recover gets a body from another member; the error is that of the damage if there
// is none.
func (d *damage) recover(number uint64, damaged error) ([]byte, error) {
	var body []byte
	found := false
	d.ask(context.Background(), number, func(state bodyState, got []byte) bool {
		body, found = got, state == bodyIntact
		return !found
	})
	if !found {
		return nil, damaged
	}
	kept, err := d.repair(number, body)
	d.log.Warn("damaged body got from another member", "number", number, "damage", damaged, "kept", kept, "err", err)
	if errors.Is(err, wal.ErrDamagedBody) { // it cannot be that body
		return nil, damaged
	}
	return body, nil
}

// ask asks all other members for a body, and calls each with what they say, one by
// one, until it returns false.
func (d *damage) ask(ctx context.Context, number uint64, each func(bodyState, []byte) (more bool)) {
	ctx, cancel := context.WithTimeout(ctx, bodyTimeout)
	defer cancel()
	others := d.others()
	answers := make(chan []byte, len(others))
	request := binary.LittleEndian.AppendUint64([]byte{bodyFormat}, number)
	for _, to := range others {
		go func() {
			answer, err := d.call(ctx, to, peer.MethodBody, request)
			if err != nil || len(answer) == 0 {
				answer = []byte{byte(bodyUnknown)}
			}
			answers <- answer
		}()
	}
	for range others {
		if answer := <-answers; !each(bodyState(answer[0]), answer[1:]) {
			return
		}
	}
}

// answer is the peer.Handler of requests for bodies.
func (d *damage) answer(_ context.Context, _ string, request []byte) []byte {
	if len(request) != 9 || request[0] != bodyFormat {
		return []byte{byte(bodyUnknown)}
	}
	state, body := d.own(binary.LittleEndian.Uint64(request[1:]))
	return append([]byte{byte(state)}, body...)
}

// own is what this node says of a body.
func (d *damage) own(number uint64) (bodyState, []byte) {
	next := d.next() // before Pin: what is stored meanwhile is not gone
	read, found := d.bodies.Pin(number)
	if !found {
		if number < next {
			return bodyDamaged, nil
		}
		return bodyUnknown, nil
	}
	body, err := read()
	switch {
	case err == nil:
		return bodyIntact, body
	case errors.Is(err, syscall.EIO): // the disk may read it yet: nobody gives the message up
		return bodyUnknown, nil
	case errors.Is(err, wal.ErrDamagedBody):
		return bodyDamaged, nil
	}
	return bodyUnknown, nil
}

// withheld deals with a message of which the body could not be handed out.
func (d *damage) withheld(ctx context.Context, queue sqs.QueueKey, m sqs.Received, damaged error) {
	log := d.log.With("account", queue.Account, "queue", queue.Name, "sequence", m.Receipt.Sequence, "damage", damaged)
	if !d.isLost(ctx, m.Body) {
		log.Error("message withheld: its body is damaged here, and not every member answers that it has none")
		return
	}
	mark := sqs.MarkMessageDamaged{Queue: queue, Sequence: m.Receipt.Sequence, Body: m.Body}
	outcome, err := d.do(ctx, mark)
	if err := errors.Join(err, outcome.Err); err != nil {
		log.Error("message withheld: its body is damaged everywhere", "err", fmt.Errorf("give it up: %w", err))
		return
	}
	log.Error("message lost: its body is damaged everywhere", "index", outcome.Index)
}

// isLost reports whether all members, this one included, say that they do not have
// a body that was stored.
func (d *damage) isLost(ctx context.Context, number uint64) bool {
	state, _ := d.own(number)
	lost := state == bodyDamaged
	if lost {
		d.ask(ctx, number, func(state bodyState, _ []byte) bool {
			lost = state == bodyDamaged
			return lost
		})
	}
	return lost
}
