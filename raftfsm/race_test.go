//go:build race

package raftfsm

// raceEnabled: what is measured is no measure of the program.
const raceEnabled = true
