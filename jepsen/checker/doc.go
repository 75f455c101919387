// Package checker judges a history: it finds what a broker must never do,
// whatever failed meanwhile.
//
// Every check is sound. An operation took effect at one unknown moment between
// its call and its return, one without a known answer at any moment from its
// call on, or never; a violation is reported only if no choice of these moments
// explains the history. So a report is a proof, and needs no second look.
//
// The clients of a history must not retry by themselves, and every body is sent
// once; a FIFO message that is sent again has the same deduplication id and another
// body. A receive is repeated as the same attempt only if it got no answer. A queue has no dead-letter queue, is never purged, and its retention is
// longer than the run.
package checker
