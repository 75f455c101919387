package checker_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.internal/jepsen/checker"
	"holdfast.internal/jepsen/history"
)

const second = time.Second

// story builds a history by hand. Times are in seconds.
type story struct {
	queue      string
	operations []history.Operation
	counter    int
	cluster    bool
}

func (s *story) add(o history.Operation, call, ret float64, outcome history.Outcome) *history.Operation {
	o.ID, o.Queue = int64(len(s.operations)), s.queue
	o.Call, o.Return, o.Outcome = time.Duration(call*1e9), time.Duration(ret*1e9), outcome
	if outcome == history.Info {
		o.Return = history.Never
	}
	s.operations = append(s.operations, o)
	return &s.operations[len(s.operations)-1]
}

func (s *story) body() string {
	s.counter++
	return history.Body(history.Name{Run: "r", Process: 1, Counter: s.counter}, 60)
}

func sum(body string) string {
	d := md5.Sum([]byte(body))
	return hex.EncodeToString(d[:])
}

// send adds an acknowledged send of message id and returns its body.
func (s *story) send(id string, call, ret float64) string {
	body := s.body()
	s.add(history.Operation{Kind: history.Send, Process: 1, Body: body, MessageID: id, MD5: sum(body), Delay: history.QueueDefault}, call, ret, history.OK)
	return body
}

func (s *story) receive(call, ret float64, visibility time.Duration, messages ...history.Delivery) *history.Operation {
	return s.add(history.Operation{Kind: history.Receive, Max: 10, Visibility: visibility, Messages: messages}, call, ret, history.OK)
}

// handout adds a receive of one message by the queue's visibility timeout, 10 s.
func (s *story) handout(id, body string, count int, call, ret float64) *history.Operation {
	return s.receive(call, ret, history.QueueDefault, out(id, body, count))
}

func out(id, body string, count int) history.Delivery {
	return history.Delivery{MessageID: id, Body: body, MD5: sum(body), Count: count, Handle: fmt.Sprintf("%s#%d", id, count), SentAt: 1, FirstAt: 2}
}

func (s *story) delete(handle string, call, ret float64, outcome history.Outcome) *history.Operation {
	return s.add(history.Operation{Kind: history.Delete, Handle: handle}, call, ret, outcome)
}

func (s *story) change(handle string, visibility time.Duration, call, ret float64, outcome history.Outcome) *history.Operation {
	return s.add(history.Operation{Kind: history.Change, Handle: handle, Visibility: visibility}, call, ret, outcome)
}

// drain ends the story: the messages are handed out and deleted, the queue is empty.
func (s *story) drain(at float64, messages ...history.Delivery) {
	r := s.receive(at, at+0.1, history.QueueDefault, messages...)
	r.Phase = history.Drain
	for _, m := range messages {
		s.delete(m.Handle, at+0.2, at+0.3, history.OK).Phase = history.Drain
	}
	s.add(history.Operation{Kind: history.Count, Phase: history.Drain}, at+0.4, at+0.5, history.OK)
}

func (s *story) check() checker.Report {
	return checker.Check(s.operations, checker.Options{
		Queues: map[string]checker.Queue{
			"q":      {VisibilityTimeout: 10 * second},
			"q.fifo": {VisibilityTimeout: 10 * second, FIFO: true, DedupWindow: 20 * second},
			"h.fifo": {VisibilityTimeout: 10 * second, FIFO: true, DedupWindow: 20 * second, DedupByGroup: true},
		},
		Drained: true,
		Cluster: s.cluster,
	})
}

// tale is a story about one queue and the property that it breaks; "" for none.
type tale struct {
	name string
	tell func(*story)
	want string
}

// Each broken story breaks one property and no other; the good ones next to
// them differ in what excuses the broker.
func TestEachPropertyCanBeBroken(t *testing.T) {
	tests := []tale{
		{"all is well", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.handout("a", b, 2, 13, 15)
			s.delete("a#2", 16, 17, history.OK)
			s.drain(30)
		}, ""},
		{"an acknowledged message is never seen", func(s *story) {
			s.send("a", 1, 2)
			s.drain(30)
		}, "P1-loss"},
		{"a message vanishes after a hand-out", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.drain(30)
		}, "P1-loss"},
		{"a refused delete excuses no loss", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			d := s.delete("a#1", 5, 6, history.Fail)
			d.Error = "connection refused"
			s.drain(30)
		}, "P1-loss"},
		{"a delete with an unknown outcome may have worked", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.delete("a#1", 5, 0, history.Info)
			s.drain(30)
		}, ""},
		{"an unknown send may be lost", func(s *story) {
			s.add(history.Operation{Kind: history.Send, Body: s.body(), Delay: history.QueueDefault}, 1, 0, history.Info)
			s.drain(30)
		}, ""},
		{"an unknown send may be stored", func(s *story) {
			b := s.body()
			s.add(history.Operation{Kind: history.Send, Body: b, Delay: history.QueueDefault}, 1, 0, history.Info)
			s.drain(30, out("a", b, 1))
		}, ""},
		{"a message that nobody sent", func(s *story) {
			s.drain(30, out("a", s.body(), 1))
		}, "P2-phantom"},
		{"a message whose send was refused", func(s *story) {
			b := s.body()
			s.add(history.Operation{Kind: history.Send, Body: b}, 1, 2, history.Fail)
			s.drain(30, out("a", b, 1))
		}, "P2-phantom"},
		{"a changed body", func(s *story) {
			b := s.send("a", 1, 2)
			d := out("a", strings.Replace(b, "r.1", "r.2", 1), 1)
			s.drain(30, d)
		}, "P2-phantom"},
		{"a wrong digest", func(s *story) {
			d := out("a", s.send("a", 1, 2), 1)
			d.MD5 = sum("")
			s.drain(30, d)
		}, "P2-phantom"},
		{"a wrong digest in the answer to the send", func(s *story) {
			d := out("a", s.send("a", 1, 2), 1)
			s.operations[0].MD5 = sum("")
			s.drain(30, d)
		}, "P2-phantom"},
		{"a message before its send", func(s *story) {
			b := s.body()
			s.receive(1, 2, second, out("a", b, 1))
			s.add(history.Operation{Kind: history.Send, Body: b, MessageID: "a", MD5: sum(b), Delay: history.QueueDefault}, 3, 4, history.OK)
			s.drain(30, out("a", b, 2))
		}, "P2-phantom"},
		{"two copies", func(s *story) {
			b := s.body()
			s.add(history.Operation{Kind: history.Send, Body: b, Delay: history.QueueDefault}, 1, 0, history.Info)
			s.drain(30, out("a", b, 1), out("b", b, 1))
		}, "P3-copies"},
		{"a lease that ends early", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.handout("a", b, 2, 12, 12.9)
			s.drain(30, out("a", b, 3))
		}, "P4-lease"},
		{"a lease that an answer can just not prove to end early", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.handout("a", b, 2, 12, 13)
			s.drain(30, out("a", b, 3))
		}, ""},
		{"an extension that is forgotten", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.change("a#1", 10*second, 8, 9, history.OK)
			s.handout("a", b, 2, 16, 17.9)
			s.drain(40, out("a", b, 3))
		}, "P4-lease"},
		{"an extension that may not have worked", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.change("a#1", 10*second, 8, 0, history.Info)
			s.handout("a", b, 2, 16, 17.9)
			s.drain(40, out("a", b, 3))
		}, ""},
		{"a release", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.change("a#1", 0, 5, 6, history.OK)
			s.handout("a", b, 2, 6.5, 7)
			s.drain(40, out("a", b, 3))
		}, ""},
		{"a release by an older handle", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.handout("a", b, 2, 14, 15)
			s.change("a#1", 0, 15.5, 16, history.OK)
			s.handout("a", b, 3, 17, 18)
			s.drain(40, out("a", b, 4))
		}, ""},
		{"a message that stays away after its deadline", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.receive(17, 18, second)
			s.drain(30, out("a", b, 2))
		}, "P4b-stuck"},
		{"a long poll that misses a deadline", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.receive(5, 25, second).Wait = 20 * second
			s.drain(30, out("a", b, 2))
		}, "P4b-stuck"},
		{"an empty answer to a long poll that was long on its way", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.receive(13, 25, second).Wait = 2 * second
			s.drain(30, out("a", b, 2))
		}, ""},
		{"nothing there within the slack", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.receive(15.9, 16, second)
			s.drain(30, out("a", b, 2))
		}, ""},
		{"an unknown extension explains that it stays away", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.change("a#1", 20*second, 5, 0, history.Info)
			s.receive(17, 18, second)
			s.drain(30, out("a", b, 2))
		}, ""},
		{"a delete that is refused", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.delete("a#1", 5, 6, history.Fail).Status = 404
			s.drain(30, out("a", b, 2))
		}, "P5-handle"},
		{"a change of visibility that is refused", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.change("a#1", second, 15, 16, history.Fail).Status = 400
			s.drain(30, out("a", b, 2))
		}, "P5-handle"},
		{"a change of visibility of a message that may be deleted", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.delete("a#1", 5, 6, history.OK)
			s.change("a#1", second, 7, 8, history.Fail).Status = 400
			s.drain(30)
		}, ""},
		{"a count that starts again", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			d := out("a", b, 1)
			d.Handle = "again"
			s.drain(30, d)
		}, "P6-count"},
		{"a count that jumps", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.drain(30, out("a", b, 3))
		}, "P6-count"},
		{"a count that jumps over an unknown receive", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.add(history.Operation{Kind: history.Receive, Max: 1, Visibility: second}, 15, 0, history.Info)
			s.drain(30, out("a", b, 3))
		}, ""},
		{"more jumps than an unknown receive has room for", func(s *story) {
			a, b := s.send("a", 1, 2), s.send("b", 1, 2)
			s.add(history.Operation{Kind: history.Receive, Max: 1, Visibility: second}, 15, 0, history.Info)
			s.drain(30, out("a", a, 2), out("b", b, 2))
		}, "P6-count"},
		{"a count that goes back in time", func(s *story) {
			b := s.send("a", 1, 2)
			s.receive(3, 4, 0, out("a", b, 2))
			s.receive(5, 6, 0, out("a", b, 1))
			s.drain(30, out("a", b, 3))
		}, "P6-count"},
		{"a delayed message that comes early", func(s *story) {
			b := s.send("a", 1, 2)
			s.operations[0].Delay = 5 * second
			s.handout("a", b, 1, 3, 5.9)
			s.drain(30, out("a", b, 2))
		}, "P10-delay"},
		{"a delayed message that comes late", func(s *story) {
			b := s.send("a", 1, 2)
			s.operations[0].Delay = 5 * second
			s.receive(9.5, 10, second)
			s.drain(30, out("a", b, 1))
		}, "P10-delay"},
		{"a message that a receive does not find", func(s *story) {
			b := s.send("a", 1, 2)
			s.receive(5, 6, second)
			s.drain(30, out("a", b, 1))
		}, "P10-delay"},
		{"a deleted message that comes back", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.delete("a#1", 5, 6, history.OK)
			s.handout("a", b, 2, 14, 15)
			s.drain(30)
		}, "P11-delete"},
		{"a hand-out beside a delete", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			s.handout("a", b, 2, 13, 15)
			s.delete("a#1", 12, 14, history.OK)
			s.drain(30)
		}, ""},
		{"a queue that counts more than it holds", func(s *story) {
			s.drain(30)
			s.operations[len(s.operations)-1].InFlight = 1
		}, "P13-residue"},
		{"a queue that is not counted", func(s *story) {
			s.drain(30)
			s.operations = s.operations[:len(s.operations)-1]
		}, "P13-residue"},
		{"a first receive time that changes", func(s *story) {
			b := s.send("a", 1, 2)
			s.handout("a", b, 1, 3, 4)
			d := out("a", b, 2)
			d.FirstAt++
			s.drain(30, d)
		}, "P20-time"},
	}
	tests = append(tests, talesOfFIFO()...)
	tests = append(tests, talesOfClusters()...)
	covered := map[string]bool{}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := story{queue: "q"}
			test.tell(&s)
			report := s.check()
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			if got := report.Broken(); !slices.Equal(got, want) {
				t.Errorf("broken: %v, want %v\n%s", got, want, report)
			}
		})
		covered[test.want] = true
	}
	for _, p := range checker.Properties() {
		if !covered[p.Name] {
			t.Errorf("no story breaks %s", p.Name)
		}
	}
}

func TestLossesTellWhereTheyLie(t *testing.T) {
	s := story{queue: "q"}
	var kept []history.Delivery
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		body := s.send(id, float64(i), float64(i)+0.5)
		if id != "b" && id != "c" {
			kept = append(kept, out(id, body, 1))
		}
	}
	s.drain(30, kept...)
	text := s.check().String()
	if want := "process 1 lost 2 of 5 acknowledged sends, in order: .X."; !strings.Contains(text, want) {
		t.Errorf("got %s\nwant a line with %q", text, want)
	}
}
