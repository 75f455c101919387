package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast.internal/cluster"
	"holdfast.internal/httpapi/admin"
)

// writeLog makes a data folder in which a queue saw a send, a receive and a
// delete, and a queue that is not there was asked for.
func writeLog(t *testing.T) (data string) {
	t.Helper()
	data = t.TempDir()
	s := serve(t, data)
	queue := createQueue(t, s, "orders", nil)
	send(t, s, queue, "apple")
	m := receive(t, s, queue, 1)[0]
	if _, err := s.SQS.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	nowhere := strings.TrimSuffix(queue, "orders") + "nowhere"
	if _, err := s.SQS.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &nowhere}); err == nil {
		t.Fatal("delete of no queue: got no error")
	}
	if code := s.stop(); code != 0 {
		t.Fatalf("stop: got exit %d, want 0", code)
	}
	return data
}

func TestDump(t *testing.T) {
	data := writeLog(t)
	got := dump(t, data)
	want := []struct{ kind, queue, result string }{
		{"CreateQueue", "orders", "ok"},
		{"SendMessageBatch", "orders", "ok"},
		{"ReceiveMessage", "orders", "ok, 1 received"},
		{"DeleteMessageBatch", "orders", "ok"},
		{"DeleteQueue", "nowhere", "QueueDoesNotExist"},
	}
	i := 0
	for _, line := range got {
		if i < len(want) && line.Kind == want[i].kind && line.Queue == want[i].queue && strings.HasPrefix(line.Result, want[i].result) {
			i++
		}
	}
	if i < len(want) {
		t.Errorf("got %+v, want among them, in this order, %+v", got, want[i])
	}

	received := got[slices.IndexFunc(got, func(line dumpLine) bool { return line.Kind == "ReceiveMessage" })]
	only := dump(t, data, "--from", fmt.Sprint(received.Index), "--to", fmt.Sprint(received.Index))
	if len(only) != 1 || only[0] != received {
		t.Errorf("--from and --to one entry: got %+v, want %+v", only, received)
	}
}

// The results of what a snapshot covers are unknown; those of what follows are
// not.
func TestDumpAfterSnapshot(t *testing.T) {
	const every = 20 // entries; all of the test are fewer than twice as many, so that one snapshot is taken, whenever
	data := t.TempDir()
	s := serve(t, data, "--test-mode", "--test-snapshot-entries", strconv.Itoa(every))
	queue := createQueue(t, s, "orders", nil)
	for range every {
		send(t, s, queue, "apple")
	}
	snapshot := waitForGroup(t, s, "a snapshot", func(g admin.Group) bool { return g.Snapshot > 0 }).Snapshot
	send(t, s, queue, "berry")
	s.stop()
	results := map[string]int{} // of the sends
	for _, line := range dump(t, data) {
		if line.Kind != "SendMessageBatch" {
			continue
		}
		results[line.Result]++
		if line.Index > snapshot && line.Result != "ok" {
			t.Errorf("entry %d, snapshot at %d: got result %q, want ok", line.Index, snapshot, line.Result)
		}
		if line.Index < snapshot && line.Result != "" {
			t.Errorf("entry %d, snapshot at %d: got result %q, want none", line.Index, snapshot, line.Result)
		}
	}
	if results[""] == 0 || results["ok"] == 0 {
		t.Errorf("got results %v, want sends before the snapshot and after it", results)
	}
}

// Beside a running node there are no results, and nothing is touched.
func TestDumpOfRunningNode(t *testing.T) {
	data := t.TempDir()
	s := serve(t, data)
	createQueue(t, s, "orders", nil)
	for _, line := range dump(t, data) {
		if line.Result != "" {
			t.Errorf("got result %q, want none", line.Result)
		}
	}
	createQueue(t, s, "more-orders", nil)
}

func TestVerify(t *testing.T) {
	data := writeLog(t)
	if got := command(t, 0, "wal", "verify", data); !strings.Contains(got, "sound") {
		t.Errorf("got %q, want sound", got)
	}
	stray := t.TempDir()
	writeFile(t, filepath.Join(stray, "photo.jpg"), "x")
	for _, args := range [][]string{
		{"wal", "verify", stray},
		{"wal", "dump", stray},
		{"queue", "trace", "--data", stray, "5fea7756-0ea4-451a-a703-a558b933e274"},
	} {
		if got, want := command(t, exitNo, args...), "holdfast: "+stray+": this is not the data folder of a node\n"; got != want {
			t.Errorf("%v: got %q, want %q", args, got, want)
		}
	}
	flipBit(t, data)
	var report walReport
	if err := json.Unmarshal([]byte(command(t, exitNo, "wal", "verify", data, "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.OK || len(report.Problems) != 1 {
		t.Errorf("got %+v, want a problem", report)
	}
	command(t, exitNo, "wal", "dump", data)
	command(t, exitNo, "wal", "verify", filepath.Join(data, "none"))

	out := command(t, 3, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if !strings.Contains(out, "corrupt") {
		t.Errorf("serve: got %q, want a word about corruption", out)
	}
}

// What a start refuses, verify finds, in the same words.
func TestVerifyFindsWhatServeRefuses(t *testing.T) {
	healthy := writeLog(t)
	remove := func(names ...string) func(t *testing.T, data string) {
		return func(t *testing.T, data string) {
			for _, name := range names {
				paths, err := filepath.Glob(filepath.Join(data, name))
				if err != nil || len(paths) == 0 {
					t.Fatalf("find %s: got %v (%v)", name, paths, err)
				}
				for _, path := range paths {
					if err := os.RemoveAll(path); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	write := func(name, content string) func(t *testing.T, data string) {
		return func(t *testing.T, data string) { writeFile(t, filepath.Join(data, name), content) }
	}
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, data string)
		code   int
		words  string
	}{
		{"log removed", remove("wal"), cluster.ExitCorrupt, "but without log and snapshots; keep this folder as it is"},
		{"files of the log removed", remove("wal/0*"), cluster.ExitCorrupt, "but without log and snapshots; keep this folder as it is"},
		{"stable store removed", remove("stable.db"), cluster.ExitCorrupt, "but stable.db has term 0"},
		{"stable store emptied", write("stable.db", ""), cluster.ExitCorrupt, "but stable.db has term 0"},
		{"identity removed", remove("node.json"), cluster.ExitIdentity, "wrong data directory: there is data in wal, but no node.json"},
		{"identity cut", write("node.json", "{"), cluster.ExitIdentity, "decode node.json: wrong data directory"},
		{"identity incomplete", write("node.json", `{"format":1,"name":"n1"}`), cluster.ExitIdentity, "node.json is incomplete"},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(data, os.DirFS(healthy)); err != nil {
				t.Fatal(err)
			}
			test.damage(t, data)
			got := command(t, exitNo, "wal", "verify", data)
			if !strings.Contains(got, test.words) || !strings.Contains(got, "damaged") {
				t.Errorf("verify: got %q, want damage and %q", got, test.words)
			}
			got = command(t, test.code, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
			if !strings.Contains(got, test.words) {
				t.Errorf("serve: got %q, want %q", got, test.words)
			}
			if strings.Contains(got, "others") {
				t.Errorf("serve alone: got %q, want no word of others", got)
			}
		})
	}
}

// flipBit damages the middle of the first segment of the log.
func flipBit(t *testing.T, data string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(data, "wal", "[0-9]*"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("find segments: got %v (%v)", segments, err)
	}
	content, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 4
	writeFile(t, segments[0], string(content))
}

func dump(t *testing.T, data string, args ...string) []dumpLine {
	t.Helper()
	var lines []dumpLine
	for text := range strings.Lines(command(t, 0, append([]string{"wal", "dump", data}, args...)...)) {
		var line dumpLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		t.Fatal("got no lines")
	}
	return lines
}
