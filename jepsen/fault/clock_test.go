package fault_test

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.internal/jepsen/fault"
)

// expectSkew checks that a fake broker's wall clock is off by as much, to the second
// that its header has.
func expectSkew(t *testing.T, n *fault.Node, by time.Duration) {
	t.Helper()
	before := time.Now()
	wall, _ := clocks(t, n)
	if early, late := before.Add(by).Sub(wall), wall.Sub(time.Now().Add(by)); early > time.Second || late > 0 {
		t.Errorf("by %v: the wall clock says %v, %v after %v", by, wall, time.Since(before), before)
	}
}

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
		expectSkew(t, n, by)
		if _, uptime := clocks(t, n); uptime < before || uptime > before+time.Minute {
			t.Errorf("by %v: uptime %v after %v", by, uptime, before)
		}
		expectSkew(t, other, 0)
	}
}

// The clock is set while all threads read it.
func TestSkewClockOfBusyProcess(t *testing.T) {
	n := start(t)
	stop := make(chan struct{})
	var answered [4]atomic.Int64
	var asking sync.WaitGroup
	for i := range answered {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if response, err := http.Get(n.Endpoint()); err == nil {
					response.Body.Close()
					answered[i].Add(1)
				}
			}
		})
	}
	defer asking.Wait()
	defer close(stop)
	awaitAll(t, answered[:], 1)
	for i := range 30 {
		if err := n.SkewClock(time.Duration(i%3-1) * time.Hour); errors.Is(err, fault.ErrUnavailable) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for i := range answered {
		answered[i].Store(0)
	}
	awaitAll(t, answered[:], 2) // the first may be one from before
	if !n.Running() {
		t.Errorf("the process has ended: %s", n.Output())
	}
}

// awaitAll waits until all have counted as much.
func awaitAll(t *testing.T, counts []atomic.Int64, least int64) {
	t.Helper()
	end := time.Now().Add(patience)
	for i := range counts {
		for ; counts[i].Load() < least; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a client got no answer")
			}
		}
	}
}
