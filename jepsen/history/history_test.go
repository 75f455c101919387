package history_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast.internal/jepsen/history"
)

// record writes a small history with every kind of operation and outcome.
func record(r *history.Recorder) {
	sends := r.Invoke(
		history.Operation{Kind: history.Send, Process: 1, Queue: "q", Body: "a", Delay: history.QueueDefault},
		history.Operation{Kind: history.Send, Process: 1, Queue: "q", Body: "b", Delay: 0},
	)
	sends[0].Outcome, sends[0].MessageID, sends[0].MD5, sends[0].Index = history.OK, "m1", "x", 7
	sends[1].Outcome, sends[1].Status, sends[1].Error = history.Fail, 403, "OverLimit"
	r.Complete(sends...)
	receive := r.Invoke(history.Operation{Kind: history.Receive, Process: 2, Queue: "q", Max: 10, Visibility: 0, Wait: time.Second, Attempt: "a"})
	receive[0].Outcome = history.OK
	receive[0].Messages = []history.Delivery{{MessageID: "m1", Handle: "h", Count: 1, Body: "a", MD5: "x", Group: "g", DedupID: "d", Sequence: "1"}}
	r.Complete(receive...)
	change := r.Invoke(history.Operation{Kind: history.Change, Process: 2, Queue: "q", Handle: "h", Visibility: 3 * time.Second})
	change[0].Outcome, change[0].Error = history.Info, "timeout"
	r.Complete(change...)
	count := r.Invoke(history.Operation{Kind: history.Count, Process: 2, Queue: "q"})
	count[0].Outcome, count[0].Visible, count[0].InFlight, count[0].Delayed = history.OK, 1, 2, 3
	r.Complete(count...)
	fifo := r.Invoke(history.Operation{Kind: history.Send, Queue: "q.fifo", Body: "c", Group: "g", DedupID: "d"})
	fifo[0].Outcome, fifo[0].Sequence = history.OK, "18849496460467696128"
	r.Complete(fifo...)
	r.Fault("kill")
	r.Invoke(history.Operation{Kind: history.Delete, Process: 3, Queue: "q", Handle: "h"})
}

func TestReadReturnsWhatWasRecorded(t *testing.T) {
	var file bytes.Buffer
	r := history.NewRecorder(&file)
	record(r)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	got, err := history.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.Operations(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestUnansweredOperationsAreUnknown(t *testing.T) {
	r := history.NewRecorder(&bytes.Buffer{})
	record(r)
	for _, o := range r.Operations() {
		open := o.Kind == history.Delete || o.Kind == history.Change
		if got := o.Outcome == history.Info && o.Return == history.Never; got != open {
			t.Errorf("%s: unknown is %v, want %v", o.Kind, got, open)
		}
	}
}

// A harness that is killed leaves half a line.
func TestReadIgnoresTheLastLineThatWasCutOff(t *testing.T) {
	var file bytes.Buffer
	record(history.NewRecorder(&file))
	lines := strings.SplitAfter(file.String(), "\n")
	cut := strings.Join(lines[:3], "") + lines[3][:10]
	got, err := history.Read(strings.NewReader(cut))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Outcome != history.OK || got[1].Outcome != history.Info {
		t.Errorf("got %+v", got)
	}
}

func TestReadRefusesWhatIsNoHistory(t *testing.T) {
	for _, text := range []string{
		"{}x\n",
		`{"i":1,"t":"invoke"}` + "\n",
		`{"i":0,"t":"ok"}` + "\n",
		`{"i":-1,"t":"ok"}` + "\n",
	} {
		if _, err := history.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestBodyNamesItsSend(t *testing.T) {
	for _, size := range []int{0, 20, 100, 255, 4096} {
		want := history.Name{Run: "r7", Process: 3, Counter: 4711}
		body := history.Body(want, size)
		if len(body) < size || len(body) > max(size, 64) {
			t.Errorf("body of %d bytes, want %d", len(body), size)
		}
		got, err := history.ParseBody(body)
		if err != nil || got != want {
			t.Errorf("got %v %v, want %v", got, err, want)
		}
	}
}

func TestParseBodyFindsEveryFlippedBit(t *testing.T) {
	body := []byte(history.Body(history.Name{Run: "r", Process: 1, Counter: 2}, 200))
	for i := range body {
		body[i] ^= 1
		if n, err := history.ParseBody(string(body)); err == nil && n == (history.Name{Run: "r", Process: 1, Counter: 2}) {
			t.Errorf("bit flip in byte %d not seen", i)
		}
		body[i] ^= 1
	}
}
