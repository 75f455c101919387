//go:build !race

package jepsen_test

// raceEnabled says that the broker is built with the race detector, too.
const raceEnabled = false
