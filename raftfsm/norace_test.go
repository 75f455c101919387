//go:build !race

package raftfsm

const raceEnabled = false

const defaultFloodIDs = 1_000_000
