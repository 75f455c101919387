//go:build !race

package sqs_test

const defaultModelCommands = 200_000

const underRace = false
