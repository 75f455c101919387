package raftfsm

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// TestFanOutPauses holds that no entry takes long, neither of a publish to very many
// subscriptions nor of very many publishes, by the processor's time of its goroutine.
func TestFanOutPauses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	// It is 2 to 3 ms where nobody else has the caches, and 8 ms on a machine with ten
	// times too much to do.
	const most = 25 * time.Millisecond
	for _, c := range []struct {
		subscriptions, publishes int
		policies                 bool // each queue has one, which the first publish asks
	}{{20_000, 1, false}, {20_000, 1, true}, {100, 900, false}} {
		times := entryTimes(t, c.subscriptions, c.publishes, c.policies)
		// A machine that stands still under its kernel adds to the time of an entry, and
		// to that of the same entry hardly again.
		for tries := 1; tries < 3 && slices.Max(times) > most && !raceEnabled; tries++ {
			for i, again := range entryTimes(t, c.subscriptions, c.publishes, c.policies) {
				times[i] = min(times[i], again)
			}
		}
		longest := slices.Max(times)
		t.Logf("%+v: %d entries, the longest took %v", c, len(times), longest)
		if longest > most && !raceEnabled {
			t.Errorf("an entry took %v", longest)
		}
	}
}

// entryTimes publishes five times to so many subscriptions, and returns how long each
// entry took, in the same order each time.
func entryTimes(t *testing.T, subscriptions, publishes int, policies bool) (times []time.Duration) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := fanOutMachine(t, subscriptions, sns.Attribute{Name: sns.FilterPolicyAttribute, Value: `{"kind":["order"]}`})
	if policies {
		for i := range subscriptions {
			queue := fmt.Sprint("queue-", i)
			m.must(sqs.SetQueueAttributes{Queue: testQueue(queue), Attributes: []sqs.Attribute{{Name: sqs.Policy, Value: sendPolicy(queue, "t")}}})
		}
	}
	operations := bytes.Repeat(AppendOperation(nil, Origin{}, m.publishEntry(t)), publishes)
	command, err := AppendCommand(nil, Pulse{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pulse := AppendOperation(nil, Origin{}, command)
	apply := func(operations []byte) {
		m.index++
		begin := threadTime(t)
		m.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: append(AppendEntryHeader(nil, m.now), operations...)})
		times = append(times, threadTime(t)-begin)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector's work is not the entry's
	for range 5 {
		apply(operations)
		for m.state.topics.Totals().Waiting > 0 {
			apply(pulse)
		}
	}
	if n, want := m.state.topics.Census()[0].Delivered, uint64(5*publishes*subscriptions); n != want {
		t.Errorf("got %d copies, want %d", n, want)
	}
	return times
}
