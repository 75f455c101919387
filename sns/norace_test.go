//go:build !race

package sns_test

const raceEnabled = false
