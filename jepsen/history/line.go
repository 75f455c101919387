package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// invoke is the "t" of the first line of an operation; that of the second is
// its Outcome.
const invoke Outcome = "invoke"

// line is one line of a history.
type line struct {
	ID         int64          `json:"i"`
	Type       Outcome        `json:"t"`
	Nanosecond int64          `json:"ns"`
	Kind       Kind           `json:"f,omitempty"`
	Process    int            `json:"p,omitempty"`
	Queue      string         `json:"q,omitempty"`
	Phase      string         `json:"phase,omitempty"`
	Body       string         `json:"body,omitempty"`
	Delay      *time.Duration `json:"delay,omitempty"`
	Handle     string         `json:"rh,omitempty"`
	Visibility *time.Duration `json:"visibility,omitempty"`
	Max        int            `json:"max,omitempty"`
	Wait       time.Duration  `json:"wait,omitempty"`
	Text       string         `json:"text,omitempty"`
	Group      string         `json:"g,omitempty"`
	DedupID    string         `json:"dd,omitempty"`
	Attempt    string         `json:"attempt,omitempty"`

	Status    int        `json:"status,omitempty"`
	Error     string     `json:"err,omitempty"`
	Index     uint64     `json:"idx,omitempty"`
	MessageID string     `json:"id,omitempty"`
	MD5       string     `json:"md5,omitempty"`
	Sequence  Sequence   `json:"sn,omitempty"`
	Messages  []Delivery `json:"v,omitempty"`
	Counts    *[3]int    `json:"n,omitempty"` // visible, in flight, delayed
}

func invokeLine(o Operation) line {
	l := line{
		ID: o.ID, Type: invoke, Nanosecond: int64(o.Call), Kind: o.Kind, Process: o.Process, Queue: o.Queue,
		Phase: o.Phase, Body: o.Body, Handle: o.Handle, Max: o.Max, Wait: o.Wait, Text: o.Text,
		Group: o.Group, DedupID: o.DedupID, Attempt: o.Attempt,
	}
	switch o.Kind {
	case Send:
		l.Delay = &o.Delay
	case Receive, Change:
		l.Visibility = &o.Visibility
	}
	return l
}

func completionLine(o Operation) line {
	l := line{
		ID: o.ID, Type: o.Outcome, Nanosecond: int64(o.Return), Status: o.Status, Error: o.Error, Index: o.Index,
		MessageID: o.MessageID, MD5: o.MD5, Sequence: o.Sequence, Messages: o.Messages,
	}
	if o.Kind == Count {
		l.Counts = &[3]int{o.Visible, o.InFlight, o.Delayed}
	}
	return l
}

// Read returns the operations of a recorded history by ID. A last line that was
// cut off is ignored; operations without an answer are Info.
func Read(r io.Reader) ([]Operation, error) {
	var operations []Operation
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return operations, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read history line %d: %w", number, err)
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("parse history line %d: %w", number, err)
		}
		if operations, err = apply(operations, l); err != nil {
			return nil, fmt.Errorf("apply history line %d: %w", number, err)
		}
	}
}

// apply adds what a line says to the operations read so far.
func apply(operations []Operation, l line) ([]Operation, error) {
	if l.Type == invoke {
		if l.ID != int64(len(operations)) {
			return nil, fmt.Errorf("operation %d invoked where %d is next", l.ID, len(operations))
		}
		return append(operations, invoked(l)), nil
	}
	if l.ID < 0 || l.ID >= int64(len(operations)) {
		return nil, fmt.Errorf("operation %d answered before it was invoked", l.ID)
	}
	o := &operations[l.ID]
	o.Outcome, o.Status, o.Error, o.Index = l.Type, l.Status, l.Error, l.Index
	o.MessageID, o.MD5, o.Sequence, o.Messages = l.MessageID, l.MD5, l.Sequence, l.Messages
	if l.Type != Info {
		o.Return = time.Duration(l.Nanosecond)
	}
	if l.Counts != nil {
		o.Visible, o.InFlight, o.Delayed = l.Counts[0], l.Counts[1], l.Counts[2]
	}
	return operations, nil
}

func invoked(l line) Operation {
	o := Operation{
		ID: l.ID, Kind: l.Kind, Process: l.Process, Queue: l.Queue, Phase: l.Phase,
		Call: time.Duration(l.Nanosecond), Return: Never, Outcome: Info,
		Body: l.Body, Handle: l.Handle, Max: l.Max, Wait: l.Wait, Text: l.Text,
		Group: l.Group, DedupID: l.DedupID, Attempt: l.Attempt,
	}
	if l.Delay != nil {
		o.Delay = *l.Delay
	}
	if l.Visibility != nil {
		o.Visibility = *l.Visibility
	}
	return o
}
