//go:build race

package raftfsm

// raceEnabled: what is measured is no measure of the program.
const raceEnabled = true

// defaultFloodIDs: the test is about figures, which the race detector changes.
const defaultFloodIDs = 100_000
