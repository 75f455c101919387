package raftfsm

import (
	"io"
	"iter"
	"testing"

	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

// noBodies keeps one body and gives it for all.
type noBodies struct{ body []byte }

func (n *noBodies) Append(_ uint64, b []byte) { n.body = b }

func (n *noBodies) Pin(uint64) (func() ([]byte, error), bool) {
	b := n.body
	return func() ([]byte, error) { return b, nil }, true
}

func (n *noBodies) CloseChunk()                                          {}
func (n *noBodies) WriteLive(io.Writer, iter.Seq2[uint64, uint64]) error { return nil }
func (n *noBodies) Pending() int64                                       { return 0 }

func (n *noBodies) OpenGeneration(io.Reader, uint64) (func(), error) { return func() {}, nil }

const benchOperations = 20 // of an entry: what 64 connections make of it

// benchMachine is a Machine with one queue.
type benchMachine struct {
	*Machine
	b     *testing.B
	index uint64
	now   sqs.Time
}

func newBenchMachine(b *testing.B) *benchMachine {
	b.Helper()
	m := &benchMachine{Machine: New(&noBodies{}, nil), b: b, now: testStart}
	m.apply(m.command(sqs.CreateQueue{Queue: testQueue("q")}))
	return m
}

func (m *benchMachine) command(c Command) []byte {
	m.b.Helper()
	b, err := AppendCommand(nil, c, nil)
	if err != nil {
		m.b.Fatal(err)
	}
	return b
}

func (m *benchMachine) apply(commands ...[]byte) *Applied {
	entry := AppendEntryHeader(nil, m.now)
	for _, c := range commands {
		entry = AppendOperation(entry, Origin{}, c)
	}
	return m.applyEntryData(entry)
}

func (m *benchMachine) applyEntryData(entry []byte) *Applied {
	m.index++
	return m.ApplyBatch([]*raft.Log{{Index: m.index, Type: raft.LogCommand, Data: entry}})[0].(*Applied)
}

func benchSend(b *testing.B) []byte {
	b.Helper()
	c, err := AppendCommand(nil, testSend(testQueue("q"), 1), [][]byte{make([]byte, 1100)})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkAppendSend encodes a send of 1 KiB into a fresh buffer.
func BenchmarkAppendSend(b *testing.B) {
	var c Command = testSend(testQueue("q"), 1)
	bodies := [][]byte{make([]byte, 1100)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AppendCommand(make([]byte, 0, 1280), c, bodies); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApplySend is the whole of apply for one send of 1 KiB, sqs included,
// in entries of 20.
func BenchmarkApplySend(b *testing.B) {
	m := newBenchMachine(b)
	send := benchSend(b)
	entry := AppendEntryHeader(nil, testStart)
	for range benchOperations {
		entry = AppendOperation(entry, Origin{}, send)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range (b.N + benchOperations - 1) / benchOperations {
		m.applyEntryData(entry)
	}
}

// BenchmarkCoreSend is what sqs has of BenchmarkApplySend.
func BenchmarkCoreSend(b *testing.B) {
	m := newBenchMachine(b)
	var c sqs.Command = testSend(testQueue("q"), 1)
	at := m.moment()
	b.ReportAllocs()
	for b.Loop() {
		m.state.queues.Apply(at, c)
		at.NextBody++
	}
}

// BenchmarkApplyCycle is send, receive and delete of one message each, in
// entries of 20 of a kind; making the entries is included.
func BenchmarkApplyCycle(b *testing.B) {
	m := newBenchMachine(b)
	send := benchSend(b)
	receive := m.command(sqs.ReceiveMessage{Queue: testQueue("q"), MaxMessages: 1, VisibilityTimeout: sqs.QueueDefault})
	sends, receives, deletes := make([][]byte, benchOperations), make([][]byte, benchOperations), make([][]byte, benchOperations)
	for i := range benchOperations {
		sends[i], receives[i] = send, receive
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range (b.N + benchOperations - 1) / benchOperations {
		m.now++
		m.apply(sends...)
		for i, o := range m.apply(receives...).Outcomes {
			message := o.Result.(sqs.ReceiveMessageResult).Messages[0]
			deletes[i] = m.command(sqs.DeleteMessageBatch{Queue: testQueue("q"), Receipts: []sqs.Receipt{message.Receipt}})
		}
		m.apply(deletes...)
	}
}
