package history

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Recorder writes a history and keeps it. It may be used by many clients at
// once.
type Recorder struct {
	start time.Time

	mu         sync.Mutex
	w          io.Writer
	operations []Operation // by ID
	err        error       // the first failure to write
}

// NewRecorder starts a history at time zero. Every line goes to w at once;
// io.Discard keeps the history in memory only.
func NewRecorder(w io.Writer) *Recorder {
	return &Recorder{start: time.Now(), w: w}
}

// Now returns the time since the start of the history.
func (r *Recorder) Now() time.Duration { return time.Since(r.start) }

// Invoke records that the operations are about to be asked in one request, and
// returns them with ID and Call set.
func (r *Recorder) Invoke(operations ...Operation) []Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	invoked := slices.Clone(operations)
	now := r.Now()
	for i := range invoked {
		o := &invoked[i]
		o.ID, o.Call, o.Return, o.Outcome = int64(len(r.operations)), now, Never, Info
		r.operations = append(r.operations, *o)
		r.write(invokeLine(*o))
	}
	return invoked
}

// Complete records the answer to operations that Invoke returned; their
// Outcome and results are set by the caller.
func (r *Recorder) Complete(operations ...Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	for _, o := range operations {
		o.Return = now
		line := completionLine(o)
		if o.Outcome == Info {
			o.Return = Never
		}
		r.operations[o.ID] = o
		r.write(line)
	}
}

// Fault records that the harness did something to the product.
func (r *Recorder) Fault(text string) {
	invoked := r.Invoke(Operation{Kind: Fault, Text: text})
	invoked[0].Outcome = OK
	r.Complete(invoked...)
}

func (r *Recorder) write(l line) {
	if r.err != nil {
		return
	}
	b, err := json.Marshal(l)
	if err == nil {
		_, err = r.w.Write(append(b, '\n'))
	}
	if err != nil {
		r.err = fmt.Errorf("write history: %w", err)
	}
}

// Operations returns the history so far, by ID; operations without an answer
// are Info.
func (r *Recorder) Operations() []Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.operations)
}

// Err returns the first error met in writing the history.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
