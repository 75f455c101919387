package cluster

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"holdfast.internal/wal"
)

// pinnedAfter is how long the log behind a snapshot stays, at most, after the
// snapshot was sent.
const pinnedAfter = 10 * time.Minute

// retention knows from where on the log is needed. A member that was away for a
// while shall go on from the log, and one that is being sent a snapshot must find
// the log behind it when it has it: it would need another snapshot for ever.
type retention struct {
	// lowest is the lowest index that a member has applied, as far as is known. It
	// is set before raft is opened.
	lowest  func() uint64
	elapsed func() time.Duration
	// scarce is set while this node's disk is below its reserve: then the log is
	// nobody's but its own. A member that needs a snapshot again can have one; a
	// node whose disk is full is gone.
	scarce atomic.Bool

	mu   sync.Mutex
	pins []*pin
}

// pin holds the log from an index on, as long as a snapshot is being sent. After
// that, if all of it was sent, it holds it until all members have what was in the
// log then, so that the receiver is no further behind than the log reaches. A try
// that failed leaves nothing: raft makes one every ten seconds for a member that is
// away, and what they held would fill the disk.
type pin struct {
	from  uint64
	ended bool
	last  uint64        // of the log, when it ended
	until time.Duration // since it ended
}

// needed is wal.LogOptions.Needed.
func (r *retention) needed() wal.Needed {
	if r.scarce.Load() {
		return wal.Needed{Wanted: wal.Nothing, Pinned: wal.Nothing}
	}
	lowest, now := r.lowest(), r.elapsed()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := wal.Needed{Wanted: lowest, Pinned: wal.Nothing}
	var kept []*pin
	for _, p := range r.pins {
		if p.ended && (lowest >= p.last || now >= p.until) {
			continue
		}
		kept = append(kept, p)
		n.Pinned = min(n.Pinned, p.from)
	}
	r.pins = kept
	return n
}

func (r *retention) pin(from uint64) *pin {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &pin{from: from}
	r.pins = append(r.pins, p)
	return p
}

// end says that the log ends with last, now that a snapshot was sent; 0 lets go of
// the log at once.
func (r *retention) end(p *pin, last uint64) {
	now := r.elapsed()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.ended {
		p.ended, p.last, p.until = true, last, now+pinnedAfter
	}
}

// pinnedSnapshots pins the log behind each snapshot that is read.
type pinnedSnapshots struct {
	*wal.Snapshots
	retention *retention
	log       raft.LogStore
}

// Open implements raft.SnapshotStore.
func (s pinnedSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := s.Snapshots.Open(id)
	if err != nil {
		return nil, nil, err
	}
	p := pinnedReader{ReadCloser: r, snapshots: s, pin: s.retention.pin(meta.Index)}
	if own, ok := r.(stateReader); ok {
		return meta, &pinnedStateReader{p, own}, nil
	}
	return meta, &p, nil
}

// stateReader is what wal gives for a snapshot whose bodies are apart.
type stateReader interface{ StateReader() io.ReadCloser }

// pinnedReader is an open snapshot.
type pinnedReader struct {
	io.ReadCloser
	snapshots pinnedSnapshots
	pin       *pin
	whole     bool // it was read to its end
}

func (r *pinnedReader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.whole = r.whole || errors.Is(err, io.EOF)
	return n, err
}

func (r *pinnedReader) Close() error {
	last := uint64(0)
	if r.whole {
		var err error
		if last, err = r.snapshots.log.LastIndex(); err != nil {
			last = wal.Nothing
		}
	}
	r.snapshots.retention.end(r.pin, last)
	return r.ReadCloser.Close()
}

type pinnedStateReader struct {
	pinnedReader
	own stateReader
}

// StateReader is called by a machine that restores this node's own snapshot:
// nobody is sent anything.
func (r *pinnedStateReader) StateReader() io.ReadCloser {
	r.snapshots.retention.end(r.pin, 0)
	return r.own.StateReader()
}
