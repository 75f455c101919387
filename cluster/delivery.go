package cluster

import (
	"errors"
	"fmt"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
	"holdfast.internal/wal"
)

// Delivery is the answer to a receive.
type Delivery struct {
	Index    uint64 // of the entry that decided it; 0: an empty answer without proof
	Messages []Message
}

// Message is one message as it is handed out.
type Message struct {
	sqs.Received
	Handle  string // the receipt handle
	Content []byte // as given to Do (sqs.ParseContent reads it); must not be changed
}

// deliver fetches the contents of a receive's messages and mints their handles.
// A message whose body is damaged on this node's disk is left out and told to
// damaged: it must not keep back the others.
func deliver(o raftfsm.Outcome, settings raftfsm.Settings, damaged func(sqs.Received, error)) (Delivery, error) {
	d := Delivery{Index: o.Index}
	if o.Err != nil {
		return d, o.Err
	}
	result, _ := o.Result.(sqs.ReceiveMessageResult) // the zero Outcome has none
	if len(result.Messages) == 0 {
		return d, nil
	}
	d.Messages = make([]Message, 0, len(result.Messages))
	for i, received := range result.Messages {
		content, err := o.Bodies[i]()
		if errors.Is(err, wal.ErrDamagedBody) {
			damaged(received, err)
			continue
		}
		if err != nil {
			return Delivery{Index: o.Index}, fmt.Errorf("read body %d: %w", received.Body, err)
		}
		d.Messages = append(d.Messages, Message{
			Received: received, Handle: settings.MintHandle(received.Receipt), Content: content,
		})
	}
	return d, nil
}
