package wire

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
)

// RandomUUID makes a UUID of version 4. The source is ChaCha8, seeded by the
// operating system.
func RandomUUID() (id [16]byte) {
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// AppendUUID appends an id in the form of RFC 9562: 36 characters, lower case.
func AppendUUID(dst []byte, id [16]byte) []byte {
	for _, part := range [...]struct{ from, to int }{{0, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 16}} {
		if part.from > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[part.from:part.to])
	}
	return dst
}

// ParseUUID reads what AppendUUID has written.
func ParseUUID(text string) (id [16]byte, ok bool) {
	digits, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(digits) != len(id) {
		return id, false
	}
	copy(id[:], digits)
	return id, string(AppendUUID(nil, id)) == text
}
