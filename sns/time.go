package sns

import "time"

// Time is cluster time: milliseconds since the Unix epoch.
type Time int64

// Add returns t + d, in whole milliseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Millisecond) }

// WindowEnd returns when a window of length d, which begins at t, is over for
// certain on every clock: cluster time runs at most 0.1 % fast.
func (t Time) WindowEnd(d time.Duration) Time {
	if d <= 0 {
		return t
	}
	return t.Add(d + d/1000 + time.Millisecond)
}

// never is later than every time.
const never Time = 1<<63 - 1
