//go:build race

package sqs_test

// defaultModelCommands: all is one goroutine, where the race detector finds
// nothing and takes ten times as long.
const defaultModelCommands = 20_000

const underRace = true
