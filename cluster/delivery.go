package cluster

import (
	"fmt"

	"holdfast.internal/raftfsm"
	"holdfast.internal/sqs"
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
func deliver(o raftfsm.Outcome, settings raftfsm.Settings) (Delivery, error) {
	d := Delivery{Index: o.Index}
	if o.Err != nil {
		return d, o.Err
	}
	result, _ := o.Result.(sqs.ReceiveMessageResult) // the zero Outcome has none
	if len(result.Messages) == 0 {
		return d, nil
	}
	d.Messages = make([]Message, len(result.Messages))
	for i, received := range result.Messages {
		content, err := o.Bodies[i]()
		if err != nil {
			return Delivery{Index: o.Index}, fmt.Errorf("read body %d: %w", received.Body, err)
		}
		d.Messages[i] = Message{Received: received, Handle: settings.MintHandle(received.Receipt), Content: content}
	}
	return d, nil
}
