package sqs_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast.internal/sqs"
)

// deadLetterQueue makes queue "dlq", to which every queue named moves its dead
// letters, with messages that were sent to it directly.
// The zero id stands for "no task" in the records of messages.
func TestMoveTaskNeedsAnID(t *testing.T) {
	p := newPlayer(t)
	for _, c := range []sqs.Command{sqs.StartMessageMoveTask{Source: key("q")}, sqs.RedriveMessage{Source: key("q"), Sequence: 1}} {
		if _, _, err := p.state.Apply(p.at, c); err == nil || err.Message != "A move task needs an id." {
			t.Errorf("%T: got %v, want a refusal for want of an id", c, err)
		}
	}
}

func (p *player) deadLetterQueue(messages int, sources ...string) {
	p.do(sqs.CreateQueue{Queue: key("dlq")})
	for _, name := range sources {
		p.do(sqs.CreateQueue{Queue: key(name), Attributes: []sqs.Attribute{attribute(p.t, sqs.RedrivePolicyAttribute, "dlq:1")}})
	}
	for sent := 0; sent < messages; sent += 10 {
		p.do(sqs.SendMessageBatch{Queue: key("dlq"), Entries: make([]sqs.SendEntry, 10)})
	}
}

func (p *player) start(source, destination string, rate int) {
	to := key(destination)
	p.do(sqs.StartMessageMoveTask{Source: key(source), Task: sqs.TaskID{1}, Destination: &to, MaxPerSecond: rate})
}

func (p *player) task(source string) sqs.MoveTask {
	p.t.Helper()
	r := p.do(sqs.ListMessageMoveTasks{Source: key(source), Limit: 1}).(sqs.ListMessageMoveTasksResult)
	if len(r.Tasks) != 1 {
		p.t.Fatalf("got %d tasks of %s, want 1", len(r.Tasks), source)
	}
	return r.Tasks[0]
}

// TestMoveTaskIsBounded: a pulse moves at most half of what its steps allow, and
// is due again at once.
func TestMoveTaskIsBounded(t *testing.T) {
	p := newPlayer(t)
	p.deadLetterQueue(1200, "back")
	p.start("dlq", "back", 0)
	for _, want := range []uint64{500, 1000, 1200} {
		if at, ok := p.state.NextPulse(); !ok || at > p.at.Now {
			t.Errorf("next pulse %v %t, want one at once", at, ok)
		}
		p.state.Pulse(p.at)
		if got := p.task("dlq").Moved; got != want {
			t.Errorf("got %d moved, want %d", got, want)
		}
	}
	if got := p.task("dlq"); got.Status != sqs.TaskCompleted || got.ToMove != 1200 {
		t.Errorf("got %+v, want completed", got)
	}
	if got := p.liveBodies(); got != 1200 {
		t.Errorf("got %d bodies, want 1,200", got)
	}
}

// TestMoveTasksShareAPulse: no task waits for the end of another.
func TestMoveTasksShareAPulse(t *testing.T) {
	p := newPlayer(t)
	for i := range 5 {
		name := fmt.Sprint("dlq", i)
		p.do(sqs.CreateQueue{Queue: key(name)})
		p.do(sqs.SetQueueAttributes{Queue: key("q"), Attributes: []sqs.Attribute{attribute(t, sqs.RedrivePolicyAttribute, name+":1")}})
		for range 30 {
			p.do(sqs.SendMessageBatch{Queue: key(name), Entries: make([]sqs.SendEntry, 10)})
		}
		p.start(name, "q", 0)
	}
	for range 3 {
		p.state.Pulse(p.at)
		p.at.Now++
	}
	for i := range 5 {
		if got := p.task(fmt.Sprint("dlq", i)); got.Moved != 300 || got.Status != sqs.TaskCompleted {
			t.Errorf("task %d: got %+v, want all moved after three pulses", i, got)
		}
	}
}

// TestMoveTaskRate lets pulses come late, up to 20 ms, and thaws the state now and
// then: in no second more than a tenth above the rate, in a minute as many as the
// rate says, within two percent.
func TestMoveTaskRate(t *testing.T) {
	for _, rate := range []int{1, 2, 7, 10, 33, 100, 500} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			p := newPlayer(t)
			p.deadLetterQueue(rate*130, "back")
			p.start("dlq", "back", rate)
			began, pulses := p.at.Now, 0
			var moves []sqs.Time // when each message was moved
			for p.at.Now < began.Add(2*time.Minute) {
				at, _ := p.state.NextPulse()
				p.at.Now = max(p.at.Now, at) + sqs.Time(pulses*7%20)
				p.state.Pulse(p.at)
				pulses++
				for range p.task("dlq").Moved - uint64(len(moves)) {
					moves = append(moves, p.at.Now)
				}
				if pulses%101 == 0 {
					p.state = thaw(t, p.state)
				}
			}
			if pulses > 120*25 {
				t.Errorf("%d pulses in two minutes", pulses)
			}
			checkRate(t, moves, rate, began)
		})
	}
}

// checkRate checks two minutes of moves.
func checkRate(t *testing.T, moves []sqs.Time, rate int, began sqs.Time) {
	t.Helper()
	most, least := float64(rate)*60*1.02+1, float64(rate)*60*0.98-1
	first := 0
	minutes := map[int]int{}
	for i, at := range moves {
		for moves[first] <= at-1000 {
			first++
		}
		if n := i - first + 1; n > rate+rate/10 {
			t.Fatalf("%d messages in the second before %v", n, at.Sub(began))
		}
		minutes[int(at.Sub(began)/time.Minute)]++
	}
	for m := range 2 {
		if n := float64(minutes[m]); n > most || n < least {
			t.Errorf("minute %d: %.0f messages, want %.0f to %.0f", m, n, least, most)
		}
	}
}

// TestMoveTaskMakesUp: after a pause, as much is made up for as would have been
// moved in one second, a tenth above the rate.
func TestMoveTaskMakesUp(t *testing.T) {
	p := newPlayer(t)
	p.deadLetterQueue(3000, "back")
	p.start("dlq", "back", 100)
	p.pulseUntil(p.at.Now.Add(10 * time.Second))
	before := p.task("dlq").Moved
	p.at.Now = p.at.Now.Add(time.Minute)
	p.state.Pulse(p.at)
	if got := p.task("dlq").Moved - before; got > 110 {
		t.Errorf("got %d messages at once, want at most 110", got)
	}
	p.pulseUntil(p.at.Now.Add(10 * time.Second))
	if got := p.task("dlq").Moved - before; got < 1090 || got > 1105 {
		t.Errorf("got %d messages in ten seconds after the pause, want those of eleven", got)
	}
}

// pulseUntil lets time pass, with all pulses on time.
func (p *player) pulseUntil(end sqs.Time) {
	for {
		at, ok := p.state.NextPulse()
		if !ok || at > end {
			p.at.Now = end
			return
		}
		p.at.Now = max(p.at.Now, at)
		p.state.Pulse(p.at)
	}
}

// TestMoveTaskLimits: ten tasks of a queue are kept, a hundred of an account run.
func TestMoveTaskLimits(t *testing.T) {
	p := newPlayer(t)
	p.deadLetterQueue(0, "back")
	for i := range 12 {
		p.do(sqs.StartMessageMoveTask{Source: key("dlq"), Task: sqs.TaskID{byte(i + 1)}})
		p.state.Pulse(p.at)
	}
	listed := p.do(sqs.ListMessageMoveTasks{Source: key("dlq"), Limit: 10}).(sqs.ListMessageMoveTasksResult).Tasks
	if len(listed) != 10 || listed[0].ID != (sqs.TaskID{12}) || listed[9].ID != (sqs.TaskID{3}) {
		t.Errorf("got %+v, want the latest ten, newest first", listed)
	}
	p.state = thaw(t, p.state)
	for i := range sqs.MaxActiveTasks + 1 {
		name := fmt.Sprintf("dlq-%d", i)
		p.do(sqs.CreateQueue{Queue: key(name)})
		p.do(sqs.SetQueueAttributes{Queue: key("back"), Attributes: []sqs.Attribute{attribute(t, sqs.RedrivePolicyAttribute, name+":1")}})
		_, _, err := p.state.Apply(p.at, sqs.StartMessageMoveTask{Source: key(name), Task: sqs.TaskID{1}})
		if refused := err != nil; refused != (i == sqs.MaxActiveTasks) {
			t.Errorf("task %d: got %v", i, err)
		}
	}
	p.state.Pulse(p.at)
	if at, ok := p.state.NextPulse(); ok {
		t.Errorf("next pulse at %v, want none: all tasks are over", at)
	}
}

// TestMoveTaskAgain: a task that gets a message for a second time, since it became
// a dead letter again meanwhile, makes another id.
func TestMoveTaskAgain(t *testing.T) {
	p := newPlayer(t)
	p.deadLetterQueue(0, "back")
	for _, name := range []string{"dlq", "back"} {
		p.do(sqs.SetQueueAttributes{Queue: key(name), Attributes: []sqs.Attribute{attribute(t, sqs.VisibilityTimeout, "0")}})
	}
	receive := func(name string) []sqs.Received {
		c := sqs.ReceiveMessage{Queue: key(name), MaxMessages: 1, VisibilityTimeout: sqs.QueueDefault}
		return p.do(c).(sqs.ReceiveMessageResult).Messages
	}
	p.do(sqs.SendMessageBatch{Queue: key("dlq"), Entries: make([]sqs.SendEntry, 1)})
	for range 3 {
		receive("dlq") // from now on it comes after all others, and keeps the task going
	}
	p.do(sqs.SendMessageBatch{Queue: key("back"), Entries: make([]sqs.SendEntry, 1)})
	receive("back")
	receive("back")
	p.start("dlq", "back", 1)
	ids := map[sqs.MessageID]bool{{}: true}
	for range 2 {
		p.state.Pulse(p.at)
		got := receive("back")
		if len(got) != 1 || got[0].ReceiveCount != 1 || got[0].Body != 2 || ids[got[0].Redriven] {
			t.Fatalf("got %+v after %v", got, ids)
		}
		ids[got[0].Redriven] = true
		receive("back")
		p.at.Now = p.at.Now.Add(time.Second)
	}
}

// TestMoveTaskOfAQueueThatIsItsOwnDeadLetterQueue ends.
func TestMoveTaskOfAQueueThatIsItsOwnDeadLetterQueue(t *testing.T) {
	p := newPlayer(t)
	p.do(sqs.SetQueueAttributes{Queue: key("q"), Attributes: []sqs.Attribute{
		attribute(t, sqs.RedrivePolicyAttribute, "q:1"), attribute(t, sqs.VisibilityTimeout, "0"),
	}})
	p.do(sqs.SendMessageBatch{Queue: key("q"), Entries: make([]sqs.SendEntry, 1)})
	receive := sqs.ReceiveMessage{Queue: key("q"), MaxMessages: 1, VisibilityTimeout: sqs.QueueDefault}
	p.do(receive)
	p.do(receive)
	p.do(sqs.StartMessageMoveTask{Source: key("q"), Task: sqs.TaskID{1}})
	p.state.Pulse(p.at)
	if got := p.task("q"); got.Status != sqs.TaskFailed || got.FailureReason != sqs.CouldNotDetermineMessageSource {
		t.Errorf("got %+v, want failed", got)
	}
	if got := p.state.Totals(p.at.Now); got.Visible != 1 {
		t.Errorf("got %+v, want the message where it was", got)
	}
}

// A FIFO message whose retention ends at this very moment is not moved any more.
func TestMoveTaskLeavesExpired(t *testing.T) {
	p := fifoPlayer(t)
	p.t = t
	attributes := func(name sqs.AttributeName, value string) []sqs.Attribute {
		return []sqs.Attribute{attribute(t, name, value)}
	}
	for _, name := range []string{"source.fifo", "back.fifo"} {
		p.do(sqs.CreateQueue{Queue: key(name), Attributes: attributes(sqs.FifoQueue, "true")})
	}
	redrive := sqs.Attribute{
		Name: sqs.RedrivePolicyAttribute, Value: "{}", Redrive: &sqs.RedrivePolicy{Target: key("q.fifo"), MaxReceiveCount: 1},
	}
	p.do(sqs.SetQueueAttributes{Queue: key("source.fifo"), Attributes: []sqs.Attribute{redrive}})
	p.do(sqs.SetQueueAttributes{Queue: key("q.fifo"), Attributes: attributes(sqs.MessageRetentionPeriod, "60")})
	for _, test := range []struct {
		age  time.Duration
		want uint64
	}{{time.Minute - time.Millisecond, 1}, {time.Minute, 0}} {
		p.sendFIFO("g")
		p.at.Now = p.at.Now.Add(test.age)
		p.start("q.fifo", "back.fifo", 0)
		p.state.Pulse(p.at)
		if got := p.task("q.fifo"); got.Moved != test.want || got.Status != sqs.TaskCompleted {
			t.Errorf("at the age of %v: got %+v, want %d moved", test.age, got, test.want)
		}
	}
}
