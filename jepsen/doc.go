// Package jepsen is the fault-injection harness: it starts brokers as processes,
// breaks what they stand on, records what clients saw, and judges the history.
//
// It imports no room of the broker and knows it by HTTP alone, so that a mistake
// in the broker cannot hide in the judge. What lives here so far: fault (the
// injectors), bench (load and its floors, run by `holdfast bench`) and clients
// (AWS SDKs in other languages, run by `make test-clients`).
package jepsen
