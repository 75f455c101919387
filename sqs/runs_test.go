package sqs

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// single is one message of a list.
type single struct {
	sequence, body uint64
	sentAt         Time
}

// TestList compares a list with a slice of single messages. Frozen copies of it
// must not change whatever happens to the list afterwards.
func TestList(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		playList(t, rand.New(rand.NewPCG(seed, 0)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func playList(t *testing.T, r *rand.Rand) {
	l := list{window: Time(r.IntN(2) * 10)}
	var want, frozenWant []single
	var frozen *list
	var next single
	for step := range 4000 {
		next.sentAt += Time(r.IntN(3) / 2)
		switch n := r.IntN(100); {
		case n < 60:
			next.sequence += 1 + uint64(r.IntN(2))
			next.body += 1 + uint64(r.IntN(2))
			count := uint32(1 + r.IntN(3))
			l.push(run{sequence: next.sequence, body: next.body, sentAt: next.sentAt, count: count})
			for range count {
				want = append(want, next)
				next.sequence++
				next.body++
			}
			next.sequence--
			next.body--
		case n < 95 && l.passed > l.taken: // only what is due is taken from a queue
			rank, body := l.pop()
			if got := (single{rank.sequence, body, rank.at}); got != want[0] {
				t.Fatalf("pop: got %v, want %v", got, want[0])
			}
			want = want[1:]
		case n == 95 && step%10 == 0:
			cutoff := next.sentAt - Time(r.IntN(200))
			l.dropTo(l.after(cutoff))
			want = slices.DeleteFunc(slices.Clone(want), func(s single) bool { return s.sentAt <= cutoff })
		case n == 96 && len(want) > 0:
			l.frozen = true
			f := l
			frozen, frozenWant = &f, want
		}
		checkList(t, &l, want, next.sentAt)
		if frozen != nil && step%50 == 0 {
			checkContent(t, frozen, frozenWant)
		}
		if t.Failed() {
			return
		}
	}
	checkContent(t, &l, want)
}

func checkList(t *testing.T, l *list, want []single, now Time) {
	t.Helper()
	if got := int(l.sent - l.taken); got != len(want) {
		t.Errorf("got %d messages, want %d", got, len(want))
	}
	l.pass(l.after(now - l.window))
	i := slices.IndexFunc(want, func(s single) bool { return s.sentAt+l.window > now })
	if i < 0 {
		i = len(want)
	}
	if got := int(l.passed - l.taken); got != i {
		t.Errorf("passed %d, want %d", got, i)
	}
	if i < len(want) && l.next != (rank{at: want[i].sentAt, sequence: want[i].sequence}) {
		t.Errorf("next is %v, want %v", l.next, want[i])
	}
}

func checkContent(t *testing.T, l *list, want []single) {
	t.Helper()
	var got []single
	c := cursor{list: l}
	for r, ok := c.next(); ok; r, ok = c.next() {
		for i := range uint64(r.count) {
			got = append(got, single{r.sequence + i, r.body + i, r.sentAt})
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestRunsMerge shows that messages of one time are one run, also across
// commands, and that nothing else is merged.
func TestRunsMerge(t *testing.T) {
	for _, test := range []struct {
		name   string
		second run
		want   int
	}{
		{"consecutive", run{sequence: 4, body: 14, sentAt: 5, count: 1}, 1},
		{"another time", run{sequence: 4, body: 14, sentAt: 6, count: 1}, 2},
		{"a sequence number between", run{sequence: 5, body: 14, sentAt: 5, count: 1}, 2},
		{"a body between", run{sequence: 4, body: 15, sentAt: 5, count: 1}, 2},
	} {
		var l list
		l.push(run{sequence: 1, body: 11, sentAt: 5, count: 3})
		l.push(test.second)
		if got := len(l.chunks[0].runs); got != test.want {
			t.Errorf("%s: got %d runs, want %d", test.name, got, test.want)
		}
	}
}

// TestListResumes: a list goes on with as many messages passed as it had, at the
// end of a run only, also where a chunk ends.
func TestListResumes(t *testing.T) {
	const runs = 2*chunkSize + 3
	for _, window := range []Time{0, 10} {
		for ready := range uint64(2*runs + 2) {
			l := list{window: window}
			for i := range uint64(runs) {
				l.push(run{sequence: 1 + 3*i, body: 3 * i, sentAt: Time(i), count: 2})
			}
			want := ready <= 2*runs && ready%2 == 0 && (window > 0 || ready == 2*runs)
			if got := l.resume(ready); got != want {
				t.Fatalf("window %d, %d of %d passed: got %t, want %t", window, ready, 2*runs, got, want)
			}
			next := rank{}
			if ready < 2*runs {
				next = rank{at: Time(ready / 2), sequence: 1 + 3*ready/2}
			}
			if want && (l.passed != ready || l.next != next) {
				t.Fatalf("%d passed: got %d, next %+v, want %+v", ready, l.passed, l.next, next)
			}
		}
	}
	if l := (list{}); l.resume(0) {
		t.Error("a list without messages goes on")
	}
}
