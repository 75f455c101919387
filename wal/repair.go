package wal

import (
	"fmt"
	"slices"
)

// maxRepaired is how many bytes of repaired bodies are kept in memory until a
// snapshot has written them.
const maxRepaired = 64 << 20

// repairs are bodies, got from elsewhere, that are damaged in their segments.
type repairs struct {
	bodies map[uint64][]byte
	bytes  int
}

// drop forgets those that a round has written, and the dead ones. The caller holds
// the lock of the store.
func (r *repairs) drop(done *round) {
	for number, body := range r.bodies {
		_, in := done.store.find(number)
		_, seen := done.repaired[number]
		if in == nil || seen && slices.Contains(done.made, in) {
			r.bytes -= len(body)
			delete(r.bodies, number)
		}
	}
}

// Repair replaces a body that is damaged on disk, for those who pin it from now on.
// The next snapshot writes its segment anew. The bytes must be those that were
// appended under the number and never change; if they cannot be, because the size
// is another or there is no such body, that is an error. False: too many are being
// kept already, and this one is not.
func (s *Segments) Repair(number uint64, body []byte) (kept bool, err error) {
	s.mu.RLock()
	_, in := s.find(number)
	s.mu.RUnlock()
	if in == nil {
		return false, fmt.Errorf("repair body %d: %w", number, errNotStored)
	}
	at, err := in.locate(number)
	if err != nil {
		return false, fmt.Errorf("repair body %d: %w", number, err)
	}
	if at.size != frameHeader+len(body) {
		return false, fmt.Errorf("repair body %d: %w: %d bytes, want %d", number, ErrDamagedBody, len(body), at.size-frameHeader)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.repaired
	if _, again := r.bodies[number]; again || r.bytes+len(body) > maxRepaired {
		return again, nil
	}
	if r.bodies == nil {
		r.bodies = map[uint64][]byte{}
	}
	r.bodies[number] = body
	r.bytes += len(body)
	in.rotten.Store(false) // it may be what could not be read
	return true, nil
}

// isRepaired reports whether a body of the segment was.
func (r *round) isRepaired(s *bodySegment) bool {
	for number := range r.repaired {
		if number >= s.First && number < s.Limit {
			return true
		}
	}
	return false
}

// appendFrame appends the frame of a body.
func appendFrame(b []byte, number uint64, body []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, frameHeader)...)
	putFrameHeader(b[at:], number, body)
	return append(b, body...)
}
