package fault_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
)

// clocks asks a fake broker for its wall clock and for its uptime, by its
// monotonic clock.
func clocks(t *testing.T, n *fault.Node) (wall time.Time, uptime time.Duration) {
	t.Helper()
	response, err := http.Get(n.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if wall, err = http.ParseTime(response.Header.Get("Date")); err != nil {
		t.Fatal(err)
	}
	if uptime, err = time.ParseDuration(response.Header.Get("Uptime")); err != nil {
		t.Fatal(err)
	}
	return wall, uptime
}

func TestSkewClockOfOneProcess(t *testing.T) {
	n, other := start(t), start(t)
	_, before := clocks(t, n)
	for _, by := range []time.Duration{time.Hour, -2 * time.Hour, time.Second, 0} {
		if err := n.SkewClock(by); errors.Is(err, fault.ErrUnavailable) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		wall, uptime := clocks(t, n)
		if off := time.Since(wall) + by; off < -2*time.Second || off > 2*time.Second {
			t.Errorf("by %v: the wall clock is %v off", by, time.Since(wall))
		}
		if uptime < before || uptime > before+time.Minute {
			t.Errorf("by %v: uptime %v after %v", by, uptime, before)
		}
		if wall, _ := clocks(t, other); time.Since(wall) < -2*time.Second || time.Since(wall) > 2*time.Second {
			t.Errorf("by %v: another process is off by %v", by, time.Since(wall))
		}
	}
}

// The clock is set while all threads read it.
func TestSkewClockOfBusyProcess(t *testing.T) {
	n := start(t)
	stop := make(chan struct{})
	asked := make(chan int)
	for range 4 {
		go func() {
			count := 0
			for {
				select {
				case <-stop:
					asked <- count
					return
				default:
				}
				if response, err := http.Get(n.Endpoint()); err == nil {
					response.Body.Close()
					count++
				}
			}
		}()
	}
	for i := range 30 {
		if err := n.SkewClock(time.Duration(i%3-1) * time.Hour); errors.Is(err, fault.ErrUnavailable) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	for range 4 {
		if <-asked == 0 {
			t.Error("a client got no answer")
		}
	}
	if !n.Running() {
		t.Errorf("the process has ended: %s", n.Output())
	}
}
