package raftfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// memoryBodies is a working Bodies in memory. It writes a body as number,
// size, bytes and xxhash64.
type memoryBodies struct {
	mu     sync.Mutex
	bodies map[uint64][]byte
	next   uint64
	closed uint64 // first number after the closed chunk
	corked bool   // tests: OpenGeneration fails
}

func newMemoryBodies() *memoryBodies {
	return &memoryBodies{bodies: map[uint64][]byte{}, next: 1}
}

func (m *memoryBodies) Append(number uint64, record []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number != m.next {
		panic(fmt.Sprintf("body %d appended, %d is next", number, m.next))
	}
	m.next++
	m.bodies[number] = bytes.Clone(record)
}

func (m *memoryBodies) Pin(number uint64) (func() ([]byte, error), bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.bodies[number]
	return func() ([]byte, error) { return b, nil }, ok
}

func (m *memoryBodies) CloseChunk() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = m.next
}

func (m *memoryBodies) WriteLive(w io.Writer, live iter.Seq2[uint64, uint64]) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	keep := map[uint64][]byte{}
	for first, count := range live {
		for number := first; number < first+count; number++ {
			b, ok := m.bodies[number]
			if !ok {
				return fmt.Errorf("body %d is live and not here", number)
			}
			keep[number] = b
			record := binary.BigEndian.AppendUint64(nil, number)
			record = append(binary.BigEndian.AppendUint64(record, uint64(len(b))), b...)
			record = binary.BigEndian.AppendUint64(record, xxhash.Sum64(record))
			if _, err := w.Write(record); err != nil {
				return err
			}
		}
	}
	maps.DeleteFunc(m.bodies, func(number uint64, _ []byte) bool { return number < m.closed })
	maps.Copy(m.bodies, keep)
	return nil
}

var errBodyRecord = errors.New("not a record of a body")

func (m *memoryBodies) OpenGeneration(r io.Reader, next uint64) (func(), error) {
	data, err := io.ReadAll(r)
	if err != nil || m.corked {
		return nil, errors.Join(err, errBodyRecord)
	}
	bodies := map[uint64][]byte{}
	for len(data) > 0 {
		if len(data) < 24 || binary.BigEndian.Uint64(data[8:]) > uint64(len(data)-24) {
			return nil, errBodyRecord
		}
		size := 16 + binary.BigEndian.Uint64(data[8:])
		if binary.BigEndian.Uint64(data[size:]) != xxhash.Sum64(data[:size]) {
			return nil, errBodyRecord
		}
		bodies[binary.BigEndian.Uint64(data)] = data[16:size]
		data = data[size+8:]
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.bodies, m.next, m.closed = bodies, next, next
	}, nil
}

func (m *memoryBodies) Pending() int64 { return 0 }
