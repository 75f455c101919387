package raftfsm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"sync"

	"holdfast.internal/sqs"
)

// A receipt handle in binary:
//
//	format 1 · key id 1 · incarnation 8 · sequence 8 · receive number 4 · received at 8 · MAC 16
//
// The MAC is HMAC-SHA-256 over all before it, cut to its first 16 bytes.
const (
	handleFormat    = 1
	handleFieldSize = 1 + 1 + 8 + 8 + 4 + 8
	handleMACSize   = 16
	handleSize      = handleFieldSize + handleMACSize
)

var handleEncoding = base64.RawURLEncoding.Strict()

// MintHandle gives a receipt the form in which clients hold it: at most 62
// characters, safe in URLs. It is a function of the receipt and the keys, so
// every node mints the same text. Settings without keys, which no formed
// cluster has, make it panic.
func (s *Settings) MintHandle(r sqs.Receipt) string {
	key := s.signingKey(r.ReceivedAt)
	var b [handleSize]byte
	b[0], b[1] = handleFormat, key.ID
	binary.BigEndian.PutUint64(b[2:], r.Incarnation)
	binary.BigEndian.PutUint64(b[10:], r.Sequence)
	binary.BigEndian.PutUint32(b[18:], r.ReceiveNumber)
	binary.BigEndian.PutUint64(b[22:], uint64(r.ReceivedAt))
	mac := key.sum([handleFieldSize]byte(b[:handleFieldSize]))
	copy(b[handleFieldSize:], mac[:])
	return handleEncoding.EncodeToString(b[:])
}

// ParseHandle is the inverse of MintHandle. It reports false for every text
// that no node of this cluster has minted.
func (s *Settings) ParseHandle(text string) (sqs.Receipt, bool) {
	var b [handleSize]byte
	// The decoder skips line breaks, so the length is checked on both sides.
	if len(text) != handleEncoding.EncodedLen(handleSize) {
		return sqs.Receipt{}, false
	}
	if n, err := handleEncoding.Decode(b[:], []byte(text)); err != nil || n != handleSize {
		return sqs.Receipt{}, false
	}
	key := s.keyByID(b[1])
	if b[0] != handleFormat || key == nil {
		return sqs.Receipt{}, false
	}
	mac := key.sum([handleFieldSize]byte(b[:handleFieldSize]))
	if !hmac.Equal(mac[:], b[handleFieldSize:]) {
		return sqs.Receipt{}, false
	}
	return sqs.Receipt{
		Incarnation:   binary.BigEndian.Uint64(b[2:]),
		Sequence:      binary.BigEndian.Uint64(b[10:]),
		ReceiveNumber: binary.BigEndian.Uint32(b[18:]),
		ReceivedAt:    sqs.Time(binary.BigEndian.Uint64(b[22:])),
	}, true
}

// signingKey is the newest key that held at t, or else the oldest.
func (s *Settings) signingKey(t sqs.Time) *HandleKey {
	for i := len(s.HandleKeys) - 1; i > 0; i-- {
		if s.HandleKeys[i].From <= t {
			return &s.HandleKeys[i]
		}
	}
	return &s.HandleKeys[0]
}

func (s *Settings) keyByID(id byte) *HandleKey {
	for i := range s.HandleKeys {
		if s.HandleKeys[i].ID == id {
			return &s.HandleKeys[i]
		}
	}
	return nil
}

// handleMAC is a keyed hash with the room for what goes in and out, kept
// together because a call through hash.Hash would move them to the heap.
type handleMAC struct {
	hash hash.Hash
	in   [handleFieldSize]byte
	out  [sha256.Size]byte
}

func newHandleMAC(key [32]byte) *handleMAC {
	return &handleMAC{hash: hmac.New(sha256.New, key[:])}
}

func newMACPool(key [32]byte) *sync.Pool {
	return &sync.Pool{New: func() any { return newHandleMAC(key) }}
}

// sum is the MAC of a handle's fields.
func (k *HandleKey) sum(in [handleFieldSize]byte) [handleMACSize]byte {
	var m *handleMAC
	if k.macs != nil {
		m = k.macs.Get().(*handleMAC)
		defer k.macs.Put(m)
	} else {
		m = newHandleMAC(k.Key)
	}
	m.in = in
	m.hash.Reset()
	m.hash.Write(m.in[:])
	return [handleMACSize]byte(m.hash.Sum(m.out[:0]))
}
