package raftfsm

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

// TestDigestsAtMultiples: digests are kept at multiples of 4,096 entries, the
// last 16 of them, whether or not raft kept such an index for itself.
func TestDigestsAtMultiples(t *testing.T) {
	m := New(newMemoryBodies(), nil)
	const last = 18*digestInterval + 5
	sums := map[uint64]uint64{}
	for index := uint64(1); index <= last; index++ {
		if index != 5*digestInterval { // a no-op of raft
			m.Apply(&raft.Log{Index: index, Data: AppendEntryHeader(nil, sqs.Time(index))})
		}
		if index%digestInterval == 0 {
			sums[index] = m.state.digest.sum
		}
	}
	kept := m.Digests()
	if len(kept) != digestsKept {
		t.Fatalf("got %d digests, want %d", len(kept), digestsKept)
	}
	for i, d := range kept {
		if want := uint64(i+3) * digestInterval; d.Index != want || d.Sum != sums[want] {
			t.Errorf("digest %d: got %v, want %d at %d", i, d, sums[want], want)
		}
	}
}

// TestDigestsGivenOutStay: later entries do not change a list that was handed
// out, or is on its way into a snapshot.
func TestDigestsGivenOutStay(t *testing.T) {
	m := New(newMemoryBodies(), nil)
	m.Apply(&raft.Log{Index: digestsKept * digestInterval, Data: AppendEntryHeader(nil, 1)})
	kept, snapshot := m.Digests(), m.freeze()
	m.Apply(&raft.Log{Index: 2 * digestsKept * digestInterval, Data: AppendEntryHeader(nil, 2)})
	for name, list := range map[string][]IndexedDigest{"digests": kept, "snapshot": snapshot.state.digest.kept} {
		if len(list) != digestsKept || list[0].Index != digestInterval {
			t.Errorf("%s: got %v", name, list)
		}
	}
}

// TestDigestPassesFarJump: a jump over very many indexes costs no more than
// the digests that are kept.
func TestDigestPassesFarJump(t *testing.T) {
	m := New(newMemoryBodies(), nil)
	m.Apply(&raft.Log{Index: 1 << 60, Data: AppendEntryHeader(nil, 1)})
	if kept := m.Digests(); len(kept) != digestsKept || kept[digestsKept-1].Index != 1<<60 {
		t.Errorf("got %v", kept)
	}
}

// TestDigestTellsResultsApart: entries that end otherwise have other digests.
func TestDigestTellsResultsApart(t *testing.T) {
	outcomes := []Outcome{
		{},
		{Result: sqs.Done{}},
		{Result: sqs.BatchResult{}},
		{Result: sqs.BatchResult{Errors: []*sqs.Error{nil}}},
		{Result: sqs.BatchResult{Errors: []*sqs.Error{{Code: sqs.OverLimit}}}},
		{Err: &sqs.Error{Code: sqs.OverLimit}},
		{Err: &sqs.Error{Code: sqs.OverLimit, Message: "x"}},
		{Err: &SettingError{Name: "a"}},
		{Err: &SettingError{Name: "b"}},
	}
	seen := map[uint64]int{}
	for i := range outcomes {
		for at := range sqs.Time(2) {
			d := runningDigest{}
			out := d.begin(nil, 1, at)
			outcomeFields(&out, &outcomes[i])
			d.finish(&out)
			if other, ok := seen[d.sum]; ok {
				t.Errorf("outcomes %d and %d have the same digest", i, other)
			}
			seen[d.sum] = i
		}
	}
}

// TestFullDigest: it is the one in the snapshot of the same moment, of another
// machine with the same state, and of no other state.
func TestFullDigest(t *testing.T) {
	m := newTestMachine(t)
	randomLog(m, 1, 200)
	before := m.FullDigest()
	snapshot := snapshotOf(t, m.Machine)
	if !bytes.Contains(snapshot, binary.BigEndian.AppendUint64(nil, before.Sum)) {
		t.Error("the snapshot has another digest")
	}
	other := New(newMemoryBodies(), nil)
	if err := restore(other, snapshot); err != nil {
		t.Fatal(err)
	}
	if got := other.FullDigest(); got != before || got.Index != m.AppliedIndex() {
		t.Errorf("restored: got %v, want %v", got, before)
	}
	m.must(sqs.CreateQueue{Queue: testQueue("one-more")})
	if got := m.FullDigest(); got.Sum == before.Sum || got.Index != before.Index+1 {
		t.Errorf("after one more entry: got %v, before it %v", got, before)
	}
}
