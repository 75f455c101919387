package raftfsm

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/sns"
)

// TestFanOutPauses holds that no entry takes long, neither of a publish to very many
// subscriptions nor of very many publishes, by the processor's time of its goroutine.
func TestFanOutPauses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, c := range []struct{ subscriptions, publishes int }{{20_000, 1}, {100, 900}} {
		m := fanOutMachine(t, c.subscriptions, sns.Attribute{Name: sns.FilterPolicyAttribute, Value: `{"kind":["order"]}`})
		publishes := bytes.Repeat(AppendOperation(nil, Origin{}, m.publishEntry(t)), c.publishes)
		command, err := AppendCommand(nil, Pulse{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		pulse := AppendOperation(nil, Origin{}, command)
		longest, entries := time.Duration(0), 0
		apply := func(operations []byte) {
			m.index++
			begin := threadTime(t)
			m.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: append(AppendEntryHeader(nil, m.now), operations...)})
			longest = max(longest, threadTime(t)-begin)
			entries++
		}
		percent := debug.SetGCPercent(-1) // the collector's work is not the entry's
		for range 5 {
			apply(publishes)
			for m.state.topics.Totals().Waiting > 0 {
				apply(pulse)
			}
		}
		debug.SetGCPercent(percent)
		t.Logf("%d subscriptions, %d publishes: %d entries, the longest took %v", c.subscriptions, c.publishes, entries, longest)
		if n, want := m.state.topics.Census()[0].Delivered, uint64(5*c.publishes*c.subscriptions); n != want {
			t.Errorf("got %d copies, want %d", n, want)
		}
		// It is 2 to 3 ms where nobody else has the caches, and 8 ms on a machine with ten
		// times too much to do.
		if longest > 25*time.Millisecond && !raceEnabled {
			t.Errorf("an entry took %v", longest)
		}
	}
}
