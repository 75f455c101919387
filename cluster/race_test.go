//go:build race

package cluster

// raceEnabled: long tests do less, for all is several times as slow.
const raceEnabled = true
