// Package workload drives queues as applications do and records what it asked
// and was told in a history: producers, and consumers that delete, extend,
// release, forget and come back late.
//
// Its client speaks AWS JSON, tries every call once, and knows when a failed
// call certainly did nothing.
package workload
