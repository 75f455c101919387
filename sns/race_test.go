//go:build race

package sns_test

// raceEnabled: all is one goroutine, where the race detector finds nothing and
// takes ten times as long.
const raceEnabled = true
