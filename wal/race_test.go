//go:build race

package wal

// underRace: a fault inside of the race detector cannot be turned into a panic.
const underRace = true
