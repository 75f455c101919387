package httpapi

import (
	"testing"
	"time"
)

func TestDeadlineIsSetWhenItMatters(t *testing.T) {
	start := time.Unix(1_000, 0)
	var d deadline
	for _, step := range []struct {
		name string
		want []time.Duration // from start; negative: none
		set  time.Duration   // 0: not touched
	}{
		{"first", []time.Duration{30 * time.Second}, 30 * time.Second},
		{"again at once", []time.Duration{30*time.Second + 10*time.Millisecond}, 0},
		{"there and back between two calls", []time.Duration{120 * time.Second, 30*time.Second + 20*time.Millisecond}, 0},
		{"a second later", []time.Duration{31 * time.Second}, 31 * time.Second},
		{"nearer", []time.Duration{5 * time.Second}, 5 * time.Second},
		{"none", []time.Duration{-1}, -1},
		{"still none", []time.Duration{-1}, 0},
		{"one again", []time.Duration{40 * time.Second}, 40 * time.Second},
	} {
		for _, w := range step.want {
			d.want(moment(start, w))
		}
		touched := false
		if err := d.apply(func(got time.Time) error {
			touched = true
			if want := moment(start, step.set); !got.Equal(want) {
				t.Errorf("%s: set to %v, want %v", step.name, got, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if touched != (step.set != 0) {
			t.Errorf("%s: touched the socket: %v", step.name, touched)
		}
	}
}

// moment is after start; none if it would be before.
func moment(start time.Time, after time.Duration) time.Time {
	if after < 0 {
		return time.Time{}
	}
	return start.Add(after)
}
