//go:build !race

package raftfsm

const defaultFloodIDs = 1_000_000
