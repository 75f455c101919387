package raftfsm

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

var recordLog = flag.String("record-log", "", "write testdata/logs/NAME.log anew, instead of replaying it")

// TestReplayOldLogs replays logs that older programs wrote. Every one must
// still be read and give the results and the state that it gave then; a change
// of behaviour belongs behind a new state version, with a log of its own.
//
// Until the first release there are no old logs, and v1 may be written anew:
//
//	go test ./raftfsm -run TestReplayOldLogs -record-log v1
//
// A log is a file of entries with their sizes (varints); beside it is a text
// with the running digest at its end and the hash of a snapshot taken there.
func TestReplayOldLogs(t *testing.T) {
	if *recordLog != "" {
		record(t, filepath.Join("testdata", "logs", *recordLog+".log"))
	}
	logs, err := filepath.Glob(filepath.Join("testdata", "logs", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("got no logs, %v", err)
	}
	for _, name := range logs {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got := replay(t, name)
			want, err := os.ReadFile(digestFile(name))
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func digestFile(log string) string { return strings.TrimSuffix(log, ".log") + ".digest" }

// replay gives the text of the log's digests.
func replay(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	m := New(newMemoryBodies(), nil).WithoutRecovery()
	f := fields{data: data, reading: true}
	for index := uint64(1); len(f.data) > 0; index++ {
		m.Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: f.bytes(nil)})
	}
	if err := f.end(); err != nil {
		t.Fatal(err)
	}
	return digestText(t, m)
}

func digestText(t *testing.T, m *Machine) string {
	t.Helper()
	snapshot := snapshotOf(t, m)
	return fmt.Sprintf("entries %d\nrunning %016x\nsnapshot %016x\n", m.AppliedIndex(), m.state.digest.sum, xxhash.Sum64(snapshot))
}

// sessionLog applies operations of a session, each of them twice.
func sessionLog(m *testMachine) {
	r := rand.New(rand.NewPCG(44, 0))
	m.must(OpenSession{Session: 1 << 50, Node: "n1"})
	for number := uint64(1); number <= 50; number++ {
		o := Origin{Session: 1 << 50, Number: number}
		if number > 10 {
			o.Acks = []NumberRange{{number - 10, number - 8}}
		}
		c := randomCommand(r, map[sqs.QueueKey][]sqs.Receipt{})
		m.as(o, c)
		m.as(o, c)
	}
}

// record makes a log with every kind of command.
func record(t *testing.T, name string) {
	t.Helper()
	m := newTestMachine(t)
	randomLog(m, 42, 400)
	for _, c := range filledCommands() {
		if _, ok := c.(Form); !ok {
			m.do(c)
		}
	}
	randomLog(m, 43, 100)
	sessionLog(m)
	var data []byte
	for _, l := range m.log {
		data = append(binary.AppendUvarint(data, uint64(len(l.Data))), l.Data...)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(digestFile(name), []byte(digestText(t, m.Machine)), 0o600); err != nil {
		t.Fatal(err)
	}
}
