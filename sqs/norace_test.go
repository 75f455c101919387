//go:build !race

package sqs_test

const defaultModelCommands = 1_000_000

const underRace = false
