package raftfsm

import (
	"bytes"
	"errors"
	"testing"
)

// TestFieldsRefuse reads what no writer writes.
func TestFieldsRefuse(t *testing.T) {
	long := bytes.Repeat([]byte{0xff}, 11)
	cases := []struct {
		name string
		data []byte
		read func(*fields)
		want error
	}{
		{"bool of 2", []byte{2}, func(f *fields) { f.bool(false) }, errBool},
		{"u32 of 33 bits", []byte{0x80, 0x80, 0x80, 0x80, 0x10}, func(f *fields) { f.u32(0) }, errVarint},
		{"u64 of 77 bits", long, func(f *fields) { f.u64(0) }, errVarint},
		{"i64 of 77 bits", long, func(f *fields) { f.i64(0) }, errVarint},
		{"no u64", nil, func(f *fields) { f.u64(0) }, errShort},
		{"no byte", nil, func(f *fields) { f.byte(0) }, errShort},
		{"short array", []byte{1, 2, 3}, func(f *fields) { f.fixed(make([]byte, 4)) }, errShort},
		{"short string", []byte{4, 1, 2, 3}, func(f *fields) { f.str("") }, errShort},
		{"more items than bytes", []byte{4, 1, 2, 3}, func(f *fields) { f.count(0, 10) }, errShort},
		{"more items than allowed", []byte{4, 1, 2, 3, 4}, func(f *fields) { f.count(0, 3) }, errCount},
		{"too much", []byte{1, 2}, func(f *fields) { f.byte(0) }, errTrailing},
	}
	for _, c := range cases {
		f := fields{data: c.data, reading: true}
		c.read(&f)
		if err := f.end(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}
