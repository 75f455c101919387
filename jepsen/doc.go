// Package jepsen is the fault-injection harness: it starts brokers as processes,
// breaks what they stand on, records what clients saw, and judges the history.
//
// It imports no room of the broker and knows it by HTTP alone, so that a mistake
// in the broker cannot hide in the judge.
//
//	fault        processes that are killed, damaged files, disks, clocks and links that fail
//	balance      a load balancer that follows the readiness of nodes
//	trial        three nodes behind it, to try out (make cluster)
//	workload     clients that record what they asked and were told
//	history      the record
//	checker      what a history proves about the broker
//	bench        load, measured against an echo server (`holdfast bench`)
//	mutate       does a test fail when a line of a room is broken? (`make mutate`)
//	conformance  what AWS answers, case by case
//	clients      AWS SDKs in other languages (`make test-clients`)
//
// The tests of this package run the real binary: the one in HOLDFAST_BIN, or one
// that they build.
package jepsen
