package sqs_test

import (
	"flag"
	"runtime"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

var dedupIDs = flag.Int("dedup.ids", 300_000, "deduplication ids that TestDedupFlood sends")

// TestDedupFlood holds deduplication ids to the memory that one may
// take, and the pause of a snapshot to 50 ms. The messages are deleted at once. All
// ids are forgotten in the end.
func TestDedupFlood(t *testing.T) {
	p := fifoPlayer(t)
	p.t = t
	before := heapBytes()
	every := max(1, *dedupIDs*1000/300_000/1000) // of the ids a millisecond, over five minutes
	for i := range *dedupIDs {
		if i%every == 0 && p.at.Now < scriptStart+299_000 {
			p.at.Now++
		}
		p.sendFIFO("g")
		p.deleteFIFO(p.receiveFIFO(10, time.Minute))
	}
	each := float64(heapBytes()-before) / float64(*dedupIDs)
	start := time.Now()
	frozen := p.state.Freeze()
	pause := time.Since(start)
	t.Logf("%.1f bytes an id, %v to freeze", each, pause)
	if each > 60 {
		t.Errorf("got %.1f bytes an id, want at most 60", each)
	}
	if *dedupIDs >= 1_000_000 && pause > 50*time.Millisecond {
		t.Errorf("freezing took %v, want at most 50 ms", pause)
	}
	runtime.KeepAlive(frozen)

	p.at.Now = p.at.Now.Add(6 * time.Minute)
	for pulses := 0; ; pulses++ {
		at, ok := p.state.NextPulse()
		if !ok {
			break
		}
		if at > p.at.Now || pulses > *dedupIDs/1000 {
			t.Fatalf("after %d pulses the next one is due at %v", pulses, at.Sub(p.at.Now))
		}
		p.state.Pulse(p.at)
	}
	if left := heapBytes() - before; left > 1<<20 {
		t.Errorf("%d bytes are left when all ids are forgotten", left)
	}
}

// A window of V ends V, a thousandth of it and a millisecond after the send, to the
// millisecond.
func TestDedupWindowEnds(t *testing.T) {
	for after, want := range map[sqs.Time]uint64{300_300: 1, 300_301: 2} {
		p := fifoPlayer(t)
		p.t = t
		send := func() uint64 {
			c := sqs.SendMessageBatch{Queue: key("q.fifo"), Entries: []sqs.SendEntry{{
				Size: 1, Delay: sqs.QueueDefault, GroupID: "g", DeduplicationID: "d",
			}}}
			return p.do(c).(sqs.SendMessageBatchResult).Entries[0].SequenceNumber
		}
		send()
		p.at.Now += after
		if got := send(); got != want {
			t.Errorf("after %d ms: got message %d, want %d", after, got, want)
		}
	}
}
