package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.internal/jepsen/history"
)

// Queue is what the checks must know of a queue.
type Queue struct {
	VisibilityTimeout time.Duration // the attribute
	Delay             time.Duration // the attribute DelaySeconds
	FIFO              bool
	DedupWindow       time.Duration // FIFO: how long a deduplication id is known
	DedupByGroup      bool          // FIFO: DeduplicationScope is messageGroup
}

// Options say how to judge.
type Options struct {
	Queues map[string]Queue
	// Slack is how late a message may become available again after its deadline
	// has passed, seen by a receive that was answered "nothing there". Default
	// 2 s. Being early is never forgiven.
	Slack time.Duration
	// Drained says that the history ends in a drain, which received and deleted
	// until every queue was empty.
	Drained bool
	// Cluster says that nodes pass receives on to each other. When the answer to
	// one is lost between them in a fault, and its leases are over when it could be
	// repeated, it is started anew: the client gets a good answer to the second
	// execution and never hears of the first.
	Cluster bool
}

// Property is one promise that a history is held against.
type Property struct {
	Name  string // as in reports: "P4-lease"
	Text  string // the promise
	check func(*run, *verdict)
}

// Properties returns the promises in the order of their names.
func Properties() []Property {
	return []Property{
		{"P1-loss", "an acknowledged message stays until somebody deletes it", checkLoss},
		{"P2-phantom", "what is handed out was sent, unchanged, to this queue, under the acknowledged id", checkPhantom},
		{"P3-copies", "one send is stored once", checkCopies},
		{"P4-lease", "a message in flight is handed out to nobody else before its visibility deadline", checkLease},
		{"P4b-stuck", "a message whose deadline has passed is available", checkStuck},
		{"P5-handle", "a receipt handle acts as long as its message exists; in FIFO queues while its lease lasts, and not after", checkHandle},
		{"P6-count", "receive counts rise by one with each hand-out and never start again", checkCount},
		{"P8-order", "a message of a FIFO group comes after those before it, and not while one of them is in flight", checkOrder},
		{"P9-dedup", "within the window a deduplication id stands for one message, and after it for a new one", checkDedup},
		{"P10-delay", "a delayed message appears at its time", checkDelay},
		{"P11-delete", "a deleted message never comes back", checkDelete},
		{"P13-residue", "an emptied queue counts no messages", checkResidue},
		{"P17-sequence", "sequence numbers are unique and rise in the order of sends", checkSequence},
		{"P20-time", "the timestamps of a message never change", checkTime},
	}
}

// Violation is a proof that a promise was broken.
type Violation struct {
	Property string
	Text     string
}

// Report is the verdict on a history.
type Report struct {
	Violations []Violation
	Coverage   Coverage
}

// Check judges a history.
func Check(operations []history.Operation, o Options) Report {
	if o.Slack == 0 {
		o.Slack = 2 * time.Second
	}
	r := newRun(operations, o)
	v := &verdict{}
	for _, p := range Properties() {
		v.property = p.Name
		p.check(r, v)
	}
	return Report{Violations: v.violations, Coverage: cover(r)}
}

// verdict collects the violations of the property being checked.
type verdict struct {
	property   string
	violations []Violation
}

func (v *verdict) add(format string, arguments ...any) {
	v.violations = append(v.violations, Violation{v.property, fmt.Sprintf(format, arguments...)})
}

// String lists at most five violations of each property, and what was covered.
func (r Report) String() string {
	var b strings.Builder
	shown := map[string]int{}
	for _, v := range r.Violations {
		if shown[v.Property]++; shown[v.Property] <= 5 {
			fmt.Fprintf(&b, "VIOLATION %s %s\n", v.Property, v.Text)
		}
	}
	for _, p := range Properties() {
		if n := shown[p.Name]; n > 5 {
			fmt.Fprintf(&b, "and %d more of %s\n", n-5, p.Name)
		}
	}
	fmt.Fprintf(&b, "coverage: %s", r.Coverage)
	return b.String()
}

// Broken returns the names of the properties with violations, in order.
func (r Report) Broken() []string {
	var names []string
	for _, v := range r.Violations {
		if !slices.Contains(names, v.Property) {
			names = append(names, v.Property)
		}
	}
	return names
}
