package wal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/raft"
)

// modelEntry is an entry of random size and content: empty ones, ones of zeros and
// ones that end in zeros are among them.
func modelEntry(r *rand.Rand, index uint64) *raft.Log {
	e := &raft.Log{Index: index, Term: 7, Type: raft.LogCommand}
	switch size := []int{0, r.IntN(30), r.IntN(500), r.IntN(4000)}[r.IntN(4)]; r.IntN(4) {
	case 0:
		e.Data = make([]byte, size)
	case 1:
		e.Data = append(bytes.Repeat([]byte{0xA5}, size), make([]byte, r.IntN(700))...)
	default:
		e.Data = bytes.Repeat([]byte{0xA5, byte(index), 1}, size/3+1)[:size]
	}
	e.Data = nonEmpty(e.Data)
	return e
}

// disk is what a segment has on a disk that writes whole sectors: batches that were
// synced, one that was not, and zeros.
type disk struct {
	entries []*raft.Log
	acked   uint64 // entries that were synced
	synced  []byte // their bytes
	old     []byte // the file before the last batch was written
	written []byte // and after it
}

func newDisk(r *rand.Rand) *disk {
	d := &disk{}
	batch := func(n int) (b []byte) {
		var batch []*raft.Log
		for range n {
			batch = append(batch, modelEntry(r, uint64(len(d.entries)+1)))
			d.entries = append(d.entries, batch[len(batch)-1])
		}
		return segmentOfBatch(batch)
	}
	for range r.IntN(4) {
		d.synced = append(d.synced, batch(1+r.IntN(4))...)
	}
	d.acked = uint64(len(d.entries))
	zeros := make([]byte, []int{0, r.IntN(700), r.IntN(20_000)}[r.IntN(3)])
	d.old = append(bytes.Clone(d.synced), zeros...)
	d.written = append(bytes.Clone(d.synced), batch(1+r.IntN(5))...)
	if len(d.written) < len(d.old) {
		d.written = append(d.written, zeros[len(d.written)-len(d.synced):len(d.old)-len(d.synced)]...)
	}
	return d
}

// crash returns the file with each sector as it is now or as it was, and one of
// the lengths that it had.
func (d *disk) crash(isWritten func(sector int) bool, size int) []byte {
	b := make([]byte, len(d.written))
	copy(b, d.old)
	for at := 0; at < len(b); at += sectorSize {
		if end := min(at+sectorSize, len(b)); isWritten(at / sectorSize) {
			copy(b[at:end], d.written[at:end])
		}
	}
	return b[:size]
}

// start reads a file as a start does; last is the last entry that was found.
func (d *disk) start(file []byte) (last uint64, err error) {
	end, next, err := scanSegment(file, 1, func(e *raft.Log) error { return sameEntry(e, d.entries[e.Index-1]) }, "file")
	if err != nil {
		return 0, err
	}
	if end < len(file) {
		_, err = tornTail("file", file, end, next, true)
	}
	return next - 1, err
}

// A power cut leaves any of the sectors of a batch, and of the last one a part: the
// log starts, with all that was acknowledged.
func TestAnySectorsOfTheLastBatch(t *testing.T) {
	seeds := uint64(4000)
	if underRace {
		seeds = 400
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDisk(r)
		size := len(d.old) + r.IntN(len(d.written)-len(d.old)+1)
		if r.IntN(3) > 0 {
			size = len(d.written)
		}
		likely := []float64{0.05, 0.5, 0.95}[r.IntN(3)]
		file := d.crash(func(int) bool { return r.Float64() < likely }, size)
		if p := len(d.synced) + r.IntN(4000); r.IntN(4) == 0 && p < len(file) {
			clear(file[p:])
		}
		if last, err := d.start(file); err != nil || last < d.acked {
			t.Fatalf("seed %d: entries to %d are there, %d were acknowledged: %v", seed, last, d.acked, err)
		}
	}
}

// The same for a batch that begins at each place of a sector, and each choice of
// its sectors.
func TestEachChoiceOfSectors(t *testing.T) {
	for at := range sectorSize {
		d := &disk{entries: entries(1, 4, 1, 300), acked: 1}
		d.entries[0] = entry(1, 1, 300+at)
		d.synced = segmentOf(d.entries[:1])
		d.old = append(bytes.Clone(d.synced), make([]byte, 3000)...)
		d.written = append(bytes.Clone(d.synced), segmentOfBatch(d.entries[1:])...)
		first, after := len(d.synced)/sectorSize, (len(d.written)-1)/sectorSize+1
		d.written = append(d.written, make([]byte, len(d.old)-len(d.written))...)
		for choice := range 1 << (after - first) {
			file := d.crash(func(s int) bool { return s >= first && choice>>(s-first)&1 == 1 }, len(d.written))
			if last, err := d.start(file); err != nil || last < d.acked {
				t.Fatalf("batch at byte %d, sectors %b: entries to %d are there: %v", len(d.synced), choice, last, err)
			}
		}
	}
}

// Damage of what was acknowledged is refused: any bit, and any sector that has
// become another one. Sectors that are zeros are what a crash leaves.
func TestDamageBeforeZerosIsRefused(t *testing.T) {
	seeds := uint64(4000)
	if underRace {
		seeds = 400
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 2))
		d := newDisk(r)
		records := len(segmentOf(d.entries)) // as many bytes as in batches
		damaged := bytes.Clone(d.written)
		var what string
		if r.IntN(2) == 0 {
			bit := r.IntN(records * 8)
			damaged[bit/8] ^= 1 << (bit % 8)
			what = fmt.Sprintf("bit %d of byte %d", bit%8, bit/8)
		} else {
			from := r.IntN(records) / sectorSize * sectorSize
			for i := from; i < min(from+sectorSize, len(damaged)); i++ {
				damaged[i] = byte(1 + r.IntN(255))
			}
			what = fmt.Sprintf("sector at %d", from)
		}
		end, _, _ := scanRecords(damaged, 1, ignore)
		if d.hasZeroSector(end) {
			continue
		}
		if last, err := d.start(damaged); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("seed %d, %s: entries to %d of %d are there: %v", seed, what, last, len(d.entries), err)
		}
	}
}

// hasZeroSector reports whether the record of index, at end, has a sector of zeros
// by nature.
func (d *disk) hasZeroSector(end int) bool {
	_, size, err := nextFrame(d.written[end:])
	return err != nil || hasZeroSector(d.written[:end+size], end)
}
