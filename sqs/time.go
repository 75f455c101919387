package sqs

import "time"

// Time is a moment of cluster time: milliseconds since the Unix epoch. Cluster
// time is stamped on every log entry by the leader and never goes back.
type Time int64

// Add returns the moment d after t, d cut to whole milliseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Millisecond }

// WindowEnd is where a lease, delay or deduplication window of length d that
// begins at t ends. Cluster time may run 500 ppm fast, so the window is padded
// by d/1000 and a millisecond: it never ends early in real time. An empty
// window ends at once.
func (t Time) WindowEnd(d time.Duration) Time {
	if d <= 0 {
		return t
	}
	return t.Add(d + d/1000 + time.Millisecond)
}
