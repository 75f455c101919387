//go:build race

package raftfsm

// defaultFloodIDs: the test is about figures, which the race detector changes.
const defaultFloodIDs = 100_000
