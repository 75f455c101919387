package raftfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"holdfast.internal/sqs"
)

// A snapshot:
//
//	magic 8 · section machine · section queues · full digest 8 · bodies, to the end
//
// A section is its size (8 bytes, big endian), its data, and the xxhash64 of
// the data. The full digest is the xxhash64 over the data of all sections: it is
// equal on all replicas that hold the same state. The bodies are as Bodies
// writes them, with checksums of their own. The last byte of the magic is the
// version of this format.
const snapshotMagic = "HFSTATE\x01"

// maxSection bounds the size that a section may claim: 1 TiB.
const maxSection = 1 << 40

// machineFormat is the first byte of the section machine.
const machineFormat = 1

// The ways in which a snapshot can be wrong.
var (
	errMagic    = errors.New("not a snapshot of a known format")
	errChecksum = errors.New("checksum does not match")
	errSection  = errors.New("section is too large")
	errState    = errors.New("state cannot be")
)

// snapshot is the state of one moment, on its way to a sink.
type snapshot struct {
	bodies Bodies
	state  state // without queues
	queues *sqs.Frozen
}

// Snapshot implements raft.FSM. It copies what Persist needs, and nothing
// large.
func (m *Machine) Snapshot() (raft.FSMSnapshot, error) { return m.freeze(), nil }

func (m *Machine) freeze() *snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &snapshot{bodies: m.bodies, state: m.state, queues: m.state.queues.Freeze()}
	s.state.queues = nil
	s.state.digest.kept = m.state.digest.list()
	m.bodies.CloseChunk()
	return s
}

// Persist implements raft.FSMSnapshot. It leaves Close and Cancel to raft, which
// calls them after it.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	f := fields{}
	machineFields(&f, s.state)
	if _, err := io.WriteString(sink, snapshotMagic); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	full := xxhash.New()
	for _, section := range []iter.Seq[[]byte]{slices.Values([][]byte{f.data}), s.queues.Pieces} {
		if err := writeSection(sink, section, full); err != nil {
			return fmt.Errorf("write snapshot: %w", err)
		}
	}
	if _, err := sink.Write(binary.BigEndian.AppendUint64(nil, full.Sum64())); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := s.bodies.WriteLive(sink, s.queues.Bodies()); err != nil {
		return fmt.Errorf("write snapshot: bodies: %w", err)
	}
	return nil
}

// Release implements raft.FSMSnapshot.
func (s *snapshot) Release() { *s = snapshot{} }

// Restore implements raft.FSM. The new state is built and checked aside and
// swapped in as the last step: after an error the machine is as it was.
func (m *Machine) Restore(source io.ReadCloser) error {
	r := ownReader(source)
	s, err := readState(r)
	if err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	commit, err := m.bodies.OpenGeneration(r, s.nextBody)
	if err != nil {
		return fmt.Errorf("restore snapshot: bodies: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	commit()
	m.install(s)
	return nil
}

// ownReader is the reader without raft's wrapper. If it is of a store that keeps
// bodies apart from the state, it is the one that Bodies knows: bodies that are
// on this node's disk are not copied then.
func ownReader(source io.ReadCloser) io.Reader {
	if wrapped, ok := source.(raft.ReadCloserWrapper); ok {
		source = wrapped.WrappedReadCloser()
	}
	if own, ok := source.(interface{ StateReader() io.ReadCloser }); ok {
		return own.StateReader()
	}
	return source
}

// readState reads all of a snapshot but the bodies. It reads no byte too many.
func readState(r io.Reader) (state, error) {
	var magic [len(snapshotMagic)]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return state{}, fmt.Errorf("header: %w", err)
	}
	if string(magic[:]) != snapshotMagic {
		return state{}, errMagic
	}
	full := xxhash.New()
	machine, err := readSection(r, full)
	if err != nil {
		return state{}, fmt.Errorf("machine: %w", err)
	}
	queues, err := readSection(r, full)
	if err != nil {
		return state{}, fmt.Errorf("queues: %w", err)
	}
	sum, err := readUint64(r)
	if err != nil {
		return state{}, fmt.Errorf("digest: %w", err)
	}
	if sum != full.Sum64() {
		return state{}, fmt.Errorf("digest: %w", errChecksum)
	}
	return decodeState(machine, queues)
}

func decodeState(machine, queues []byte) (state, error) {
	f := fields{data: machine, reading: true}
	s := machineFields(&f, state{settings: &Settings{}})
	if err := f.end(); err != nil {
		return state{}, fmt.Errorf("machine: %w", err)
	}
	if err := s.check(); err != nil {
		return state{}, err
	}
	var err error
	if s.queues, err = sqs.Thaw(queues); err != nil {
		return state{}, fmt.Errorf("queues: %w", err)
	}
	s.settings = s.settings.published()
	return s, nil
}

// check finds what no machine writes.
func (s *state) check() error {
	if s.nextBody == 0 {
		return fmt.Errorf("%w: body numbers begin at 1", errState)
	}
	if s.settings.Version < 1 || s.settings.Version > StateVersion {
		return fmt.Errorf("%w: version is %d, this program knows 1 to %d", errState, s.settings.Version, StateVersion)
	}
	if s.settings.ClusterID == "" {
		return nil
	}
	return validateKeys(s.settings.HandleKeys)
}

// machineFields are those of the state that are not in the section queues.
func machineFields(f *fields, s state) state {
	if format := f.byte(machineFormat); format != machineFormat {
		f.fail(fmt.Errorf("%w %d", errFormat, format))
	}
	s.applied = f.u64(s.applied)
	s.now = f.time(s.now)
	s.nextBody = f.u64(s.nextBody)
	settings := settingsFields(f, *s.settings)
	s.settings = &settings
	s.digest = runningDigestFields(f, s.digest)
	return s
}

// writeSection writes the pieces, which it asks for twice, since the size comes
// first, and adds them to full.
func writeSection(w io.Writer, pieces iter.Seq[[]byte], full *xxhash.Digest) error {
	size := 0
	for p := range pieces {
		size += len(p)
	}
	if _, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(size))); err != nil {
		return err
	}
	sum := xxhash.New()
	for p := range pieces {
		if _, err := w.Write(p); err != nil {
			return err
		}
		_, _ = sum.Write(p) // never fails, as is the next one
		_, _ = full.Write(p)
	}
	_, err := w.Write(binary.BigEndian.AppendUint64(nil, sum.Sum64()))
	return err
}

// readSection reads a section and adds its data to full. It asks for memory as
// the data comes, not as the size claims.
func readSection(r io.Reader, full *xxhash.Digest) ([]byte, error) {
	size, err := readUint64(r)
	if err != nil {
		return nil, err
	}
	if size > maxSection {
		return nil, fmt.Errorf("%w: %d bytes", errSection, size)
	}
	var data bytes.Buffer
	if _, err := io.CopyN(&data, r, int64(size)); err != nil {
		return nil, fmt.Errorf("section of %d bytes: %w", size, err)
	}
	sum, err := readUint64(r)
	if err != nil {
		return nil, err
	}
	if sum != xxhash.Sum64(data.Bytes()) {
		return nil, errChecksum
	}
	_, _ = full.Write(data.Bytes()) // never fails
	return data.Bytes(), nil
}

func readUint64(r io.Reader) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b[:]), nil
}
