package sqs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// player applies commands that must succeed, on a clock of its own.
type player struct {
	t     *testing.T
	state *sqs.State
	at    sqs.Moment
}

func newPlayer(t *testing.T) *player {
	t.Helper()
	p := &player{t: t, state: sqs.New(), at: sqs.Moment{Now: scriptStart, NextBody: 1}}
	p.do(sqs.CreateQueue{Queue: key("q")})
	return p
}

func (p *player) do(c sqs.Command) sqs.Result {
	p.t.Helper()
	r, _, err := p.state.Apply(p.at, c)
	if err != nil {
		p.t.Fatalf("%T: %v", c, err)
	}
	if sent, ok := r.(sqs.SendMessageBatchResult); ok {
		p.at.NextBody += uint64(len(sent.Entries))
	}
	return r
}

// send sends n messages, by ten, a millisecond apart.
func (p *player) send(n int) {
	p.t.Helper()
	for range n / 10 {
		p.at.Now++
		p.do(sqs.SendMessageBatch{Queue: key("q"), Entries: slices.Repeat([]sqs.SendEntry{{Delay: sqs.QueueDefault}}, 10)})
	}
}

func (p *player) receive(n int, timeout time.Duration) (all []sqs.Receipt) {
	p.t.Helper()
	for range n / 10 {
		r := p.do(sqs.ReceiveMessage{Queue: key("q"), MaxMessages: 10, VisibilityTimeout: timeout})
		for _, m := range r.(sqs.ReceiveMessageResult).Messages {
			all = append(all, m.Receipt)
		}
	}
	return all
}

func (p *player) remove(receipts ...sqs.Receipt) {
	p.t.Helper()
	p.do(sqs.DeleteMessageBatch{Queue: key("q"), Receipts: receipts})
}

func (p *player) encoding() []byte { return p.state.Freeze().AppendTo(nil) }

// TestFrozenStays shows that nothing that happens to a state changes what was
// frozen before, nor races with those who read it.
func TestFrozenStays(t *testing.T) {
	for _, n := range []int{10, 1500} { // leaves one record, or some pages of them
		p := newPlayer(t)
		p.send(2 * n)
		receipts := p.receive(n, 30*time.Second)
		p.remove(receipts[n/10:]...)
		frozen := p.state.Freeze()
		want := p.encoding()
		meanwhile := make(chan []byte)
		go func() {
			for range frozen.Bodies() {
			}
			meanwhile <- frozen.AppendTo(nil)
		}()

		p.remove(receipts[:n/10]...)
		p.send(n)
		p.receive(n, 0)
		p.at.Now = p.at.Now.Add(time.Minute)
		p.receive(n, time.Hour)
		p.do(sqs.TagQueue{Queue: key("q"), Tags: []sqs.Tag{{Key: "a"}}})
		p.do(sqs.PurgeQueue{Queue: key("q")})
		p.do(sqs.DeleteQueue{Queue: key("q")})

		if !bytes.Equal(<-meanwhile, want) {
			t.Errorf("%d messages: a frozen state has changed while it was read", n)
		}
		if !bytes.Equal(frozen.AppendTo(nil), want) {
			t.Errorf("%d messages: a frozen state has changed", n)
		}
	}
}

// TestEncodingForgetsTheWay shows that the encoding does not depend on where in
// memory the messages came to lie.
func TestEncodingForgetsTheWay(t *testing.T) {
	way := func(backwards bool) []byte {
		p := newPlayer(t)
		p.send(1000)
		receipts := p.receive(900, 30*time.Second)
		gone := receipts[100:800]
		if backwards {
			slices.Reverse(gone)
		}
		p.remove(gone...)
		p.receive(100, 30*time.Second)
		return p.encoding()
	}
	if !bytes.Equal(way(false), way(true)) {
		t.Error("two ways to one state have two encodings")
	}
}

// TestTwins plays large numbers to a state and to what was thawed from it: more
// than one command may work off, so that what is left over must be the same.
func TestTwins(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	p := newPlayer(t)
	p.do(sqs.CreateQueue{Queue: key("dlq"), Attributes: []sqs.Attribute{attribute(t, sqs.MessageRetentionPeriod, "400")}})
	p.do(sqs.SetQueueAttributes{Queue: key("q"), Attributes: []sqs.Attribute{
		attribute(t, sqs.MessageRetentionPeriod, "300"), attribute(t, sqs.RedrivePolicyAttribute, "dlq:2"),
	}})
	twin := thaw(t, p.state)
	for i := range 3000 {
		c := largeCommand(r)
		if r.IntN(200) == 0 {
			p.at.Now = p.at.Now.Add(time.Duration(r.IntN(200)) * time.Second)
		}
		want, _, _ := p.state.Apply(p.at, c)
		got, _, _ := twin.Apply(p.at, c)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("command %d of seed %d: %T: got %v, want %v", i, seed, c, got, want)
		}
		if sent, ok := want.(sqs.SendMessageBatchResult); ok {
			p.at.NextBody += uint64(len(sent.Entries))
		}
		if r.IntN(100) == 0 {
			p.state.Pulse(p.at)
			twin.Pulse(p.at)
		}
		if r.IntN(100) == 0 {
			if !bytes.Equal(p.encoding(), twin.Freeze().AppendTo(nil)) {
				t.Fatalf("command %d of seed %d: the twins differ", i, seed)
			}
			p.state, twin = twin, thaw(t, p.state)
		}
	}
}

// largeCommand sends thirty messages for each that it receives, in many groups
// and with many delays.
func largeCommand(r *rand.Rand) sqs.Command {
	if r.IntN(4) > 0 {
		c := sqs.SendMessageBatch{Queue: key("q")}
		for range 10 {
			c.Entries = append(c.Entries, sqs.SendEntry{
				Delay: time.Duration(r.IntN(100)) * time.Second, GroupID: fmt.Sprint(r.IntN(500) * r.IntN(2)), // 0 is noisy
			})
		}
		return c
	}
	name := []string{"q", "q", "q", "dlq"}[r.IntN(4)]
	return sqs.ReceiveMessage{Queue: key(name), MaxMessages: 10, VisibilityTimeout: time.Duration(r.IntN(60)) * time.Second}
}

// FuzzThaw feeds Thaw with anything. What it accepts must be a state: encode to
// one and the same text, and take any command without a panic.
func FuzzThaw(f *testing.F) {
	for _, data := range thawSeeds() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := sqs.Thaw(data)
		if err != nil {
			return
		}
		useThawed(t, thaw(t, s))
	})
}

func thawSeeds() [][]byte {
	seeds := [][]byte{nil, sqs.New().Freeze().AppendTo(nil)}
	for seed := range uint64(8) {
		g := newGenerator(seed)
		for range 100 * (seed + 1) {
			c := g.command()
			result, _, _ := g.state.Apply(g.at, c)
			g.model.apply(g.at, c)
			g.remember(c, result)
			g.passTime()
		}
		seeds = append(seeds, g.state.Freeze().AppendTo(nil))
	}
	return seeds
}

// useThawed asks everything of a state, and then changes all that is in it.
func useThawed(t *testing.T, s *sqs.State) {
	t.Helper()
	due, _ := s.NextPulse()
	at := sqs.Moment{Now: due, NextBody: 1, Rules: sqs.Rules{InFlightLimit: 1000, DeleteWait: time.Minute}}
	s.Totals(due)
	for i, c := range s.Census(due) {
		q := c.Queue
		s.Available(q, due, 10)
		s.NextAvailable(q, due)
		for _, c := range []sqs.Command{
			sqs.GetQueueAttributes{Queue: q},
			sqs.ListMessageMoveTasks{Source: q, Limit: 10},
			sqs.ReceiveMessage{Queue: q, MaxMessages: 10, VisibilityTimeout: time.Duration(i) * time.Minute},
			sqs.SendMessageBatch{Queue: q, Entries: make([]sqs.SendEntry, 2)},
			sqs.ChangeMessageVisibilityBatch{Queue: q, Entries: []sqs.VisibilityEntry{
				{Receipt: sqs.Receipt{Incarnation: c.Incarnation, Sequence: 1, ReceivedAt: due}, Timeout: time.Second},
			}},
			sqs.DeleteMessageBatch{Queue: q, Receipts: []sqs.Receipt{{Incarnation: c.Incarnation, Sequence: 2}}},
			sqs.ListDeadLetterSourceQueues{Queue: q, Limit: 1},
		} {
			_, _, _ = s.Apply(at, c)
		}
	}
	for first, count := range s.Freeze().Bodies() {
		if count == 0 {
			t.Errorf("no bodies from %d on", first)
		}
	}
	s.Pulse(at)
	thaw(t, s)
}

// TestEncodeInParts: the parts are small, and together what AppendTo gives, however
// often they are asked for.
func TestEncodeInParts(t *testing.T) {
	for name, fill := range map[string]func(p *player){
		"runs":    func(p *player) { p.flood(50_000, 1) },
		"records": func(p *player) { p.flood(20_000, 10); p.receive(20_000, time.Hour) },
		"groups": func(p *player) {
			for i := range 20_000 {
				p.do(sqs.SendMessageBatch{Queue: key("q"), Entries: []sqs.SendEntry{{GroupID: fmt.Sprint(i)}}})
			}
		},
		"FIFO":   func(p *player) { p.fifoFlood(20_000, 5) },
		"little": func(*player) {},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t)
			fill(p)
			frozen := p.state.Freeze()
			for range 2 {
				var all []byte
				largest := 0
				frozen.Encode(func(part []byte) {
					all = append(all, part...)
					largest = max(largest, len(part))
				})
				if !bytes.Equal(all, frozen.AppendTo(nil)) {
					t.Error("the parts are not the encoding")
				}
				if largest > 80<<10 && name != "groups" { // names are in one part
					t.Errorf("a part of %d bytes", largest)
				}
			}
		})
	}
}

// TestBodiesOfCopies: the numbers of a list of copies fall when an old content is
// delivered once more, and may come again.
func TestBodiesOfCopies(t *testing.T) {
	p := newPlayer(t)
	for _, body := range []uint64{9, 4, 5, 2, 20, 20, 3} {
		c := sqs.CopyEntry{Queue: key("q"), Copy: sqs.Copy{Receiver: [16]byte{1}, Shape: 1}, Body: body}
		if err := p.state.SendCopy(p.at, c); err != nil {
			t.Fatal(err)
		}
	}
	var got [][2]uint64
	for first, count := range p.state.Freeze().Bodies() {
		got = append(got, [2]uint64{first, count})
	}
	if want := [][2]uint64{{2, 4}, {9, 1}, {20, 1}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
