package raftfsm

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/sns"
)

// TestFanOutPauses holds that no entry of a publish to very many subscriptions
// takes long, by the processor's time of its goroutine.
func TestFanOutPauses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := fanOutMachine(t, 20_000, sns.Attribute{Name: sns.FilterPolicyAttribute, Value: `{"kind":["order"]}`})
	command := m.publishEntry(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector's work is not the entry's
	longest, entries := time.Duration(0), 0
	apply := func(command []byte) {
		m.index++
		begin := threadTime(t)
		m.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: AppendOperation(AppendEntryHeader(nil, m.now), Origin{}, command)})
		longest = max(longest, threadTime(t)-begin)
		entries++
	}
	pulse, err := AppendCommand(nil, Pulse{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		apply(command)
		for m.state.topics.Totals().Waiting > 0 {
			apply(pulse)
		}
	}
	t.Logf("%d entries, the longest took %v", entries, longest)
	if n := m.state.topics.Census()[0].Delivered; n != 100_000 {
		t.Errorf("got %d copies, want 100000", n)
	}
	// It is 2 to 3 ms where nobody else has the caches, and 8 ms on a machine with ten
	// times too much to do.
	if longest > 25*time.Millisecond && !raceEnabled {
		t.Errorf("an entry took %v", longest)
	}
}
