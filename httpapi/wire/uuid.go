package wire

import "encoding/hex"

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
