package raftfsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"holdfast.internal/sns"
	"holdfast.internal/sqs"
)

// A snapshot:
//
//	magic 8 · section machine · section queues · section topics · full digest 8 · bodies, to the end
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
	errMagic    = errors.New("not a snapshot")
	errChecksum = errors.New("checksum does not match")
	errSection  = errors.New("section is too large")
	errState    = errors.New("state cannot be")
)

// snapshot is the state of one moment, on its way to a sink.
type snapshot struct {
	bodies Bodies
	state  state // without queues and topics
	queues *sqs.Frozen
	topics *sns.Frozen
}

// Snapshot implements raft.FSM. It copies what Persist needs, and nothing
// large.
func (m *Machine) Snapshot() (raft.FSMSnapshot, error) { return m.freeze(), nil }

func (m *Machine) freeze() *snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.copyState()
	m.bodies.CloseChunk()
	return s
}

// copyState copies the state. The caller holds the lock.
func (m *Machine) copyState() *snapshot {
	s := &snapshot{bodies: m.bodies, state: m.state, queues: m.state.queues.Freeze(), topics: m.state.topics.Freeze()}
	s.state.queues, s.state.topics = nil, nil
	s.state.digest.kept = m.state.digest.list()
	s.state.sessions = m.state.sessions.freeze()
	return s
}

// FullDigest is the full digest as of now, with the index of the newest entry
// that was applied: equal on all machines with the same state. It costs the time
// of a snapshot without bodies, most of it beside apply.
func (m *Machine) FullDigest() IndexedDigest {
	s := m.locked()
	full := xxhash.New()
	for _, encode := range s.sections() {
		encode(func(part []byte) { _, _ = full.Write(part) }) // never fails
	}
	return IndexedDigest{Index: s.state.applied, Sum: full.Sum64()}
}

// LiveBodies yields the numbers of the bodies that the state refers to now, as
// ranges (first, count) in ascending order.
func (m *Machine) LiveBodies() iter.Seq2[uint64, uint64] { return m.locked().live() }

// locked is copyState for one who does not hold the lock.
func (m *Machine) locked() *snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.copyState()
}

// section encodes the data of a section, part by part, in the same way each time.
// A part is valid during the call.
type section func(write func(part []byte))

func (s *snapshot) sections() []section {
	f := fields{}
	machineFields(&f, s.state)
	return []section{
		func(write func(part []byte)) { write(f.data) },
		s.queues.Encode,
		func(write func(part []byte)) { write(s.topics.AppendTo(nil)) },
	}
}

// live yields the numbers of the bodies that the state refers to.
func (s *snapshot) live() iter.Seq2[uint64, uint64] {
	return union(s.queues.Bodies(), s.topics.Bodies())
}

// Persist implements raft.FSMSnapshot. It leaves Close and Cancel to raft, which
// calls them after it.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := io.WriteString(sink, snapshotMagic); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	full := xxhash.New()
	for _, encode := range s.sections() {
		if err := writeSection(sink, encode, full); err != nil {
			return fmt.Errorf("write snapshot: %w", err)
		}
	}
	if _, err := sink.Write(binary.BigEndian.AppendUint64(nil, full.Sum64())); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := s.bodies.WriteLive(sink, s.live()); err != nil {
		return fmt.Errorf("write snapshot: bodies: %w", err)
	}
	return nil
}

// Release implements raft.FSMSnapshot.
func (s *snapshot) Release() { *s = snapshot{} }

// Restore implements raft.FSM. The new state is built and checked aside and
// swapped in as the last step: after an error, which is ErrFormat for the state of
// another version, the machine is as it was.
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
	const name = len(magic) - 1 // the version is behind it
	switch {
	case string(magic[:name]) != snapshotMagic[:name]:
		return state{}, errMagic
	case magic[name] != snapshotMagic[name]:
		return state{}, fmt.Errorf("%w: %d", ErrFormat, magic[name])
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
	topics, err := readSection(r, full)
	if err != nil {
		return state{}, fmt.Errorf("topics: %w", err)
	}
	sum, err := readUint64(r)
	if err != nil {
		return state{}, fmt.Errorf("digest: %w", err)
	}
	if sum != full.Sum64() {
		return state{}, fmt.Errorf("digest: %w", errChecksum)
	}
	return decodeState(machine, queues, topics)
}

func decodeState(machine, queues, topics []byte) (state, error) {
	f := fields{data: machine, reading: true}
	s := machineFields(&f, state{settings: &Settings{}})
	if v := s.settings.Version; v > StateVersion { // which may be why the rest cannot be read
		return state{}, fmt.Errorf("%w: behaviour %d, this program knows 1 to %d", ErrFormat, v, StateVersion)
	}
	if err := f.end(); err != nil {
		return state{}, fmt.Errorf("machine: %w", err)
	}
	if err := s.check(); err != nil {
		return state{}, err
	}
	var err error
	if s.queues, err = sqs.Thaw(queues); err != nil {
		return state{}, coreError("queues", err)
	}
	if s.topics, err = sns.Thaw(topics); err != nil {
		return state{}, coreError("topics", err)
	}
	s.settings = s.settings.published()
	return s, nil
}

// coreError is the error of a core about its section.
func coreError(section string, err error) error {
	if errors.Is(err, sqs.ErrVersion) || errors.Is(err, sns.ErrVersion) {
		return fmt.Errorf("%s: %w: %w", section, ErrFormat, err)
	}
	return fmt.Errorf("%s: %w", section, err)
}

// check finds what no machine writes.
func (s *state) check() error {
	if s.nextBody == 0 {
		return fmt.Errorf("%w: body numbers begin at 1", errState)
	}
	if s.settings.Version < 1 {
		return fmt.Errorf("%w: versions begin at 1", errState)
	}
	if !s.sessions.inOrder() {
		return fmt.Errorf("%w: sessions are not in order", errState)
	}
	if s.settings.ClusterID == "" {
		return nil
	}
	return validateKeys(s.settings.HandleKeys)
}

// machineFields are those of the state that are in no other section.
func machineFields(f *fields, s state) state {
	if format := f.byte(machineFormat); format != machineFormat {
		f.fail(fmt.Errorf("%w: %d", ErrFormat, format))
	}
	s.applied = f.u64(s.applied)
	s.now = f.time(s.now)
	s.nextBody = f.u64(s.nextBody)
	settings := settingsFields(f, *s.settings)
	s.settings = &settings
	s.digest = runningDigestFields(f, s.digest)
	s.sessions = sessionsFields(f, s.sessions)
	return s
}

// writeSection encodes twice: the size comes before the data, which is not to be
// in memory as a whole. It adds the data to full.
func writeSection(w io.Writer, encode section, full *xxhash.Digest) error {
	size := 0
	encode(func(part []byte) { size += len(part) })
	if _, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(size))); err != nil {
		return err
	}
	sum := xxhash.New()
	var err error
	encode(func(part []byte) {
		_, _ = sum.Write(part)  // never fails
		_, _ = full.Write(part) // the same
		if err == nil {
			_, err = w.Write(part)
		}
	})
	if err == nil {
		_, err = w.Write(binary.BigEndian.AppendUint64(nil, sum.Sum64()))
	}
	return err
}

// readSection reads a section and adds its data to full.
func readSection(r io.Reader, full *xxhash.Digest) ([]byte, error) {
	size, err := readUint64(r)
	if err != nil {
		return nil, err
	}
	if size > maxSection {
		return nil, fmt.Errorf("%w: %d bytes", errSection, size)
	}
	data, err := readData(r, int(size))
	if err != nil {
		return nil, fmt.Errorf("section of %d bytes: %w", size, err)
	}
	sum, err := readUint64(r)
	if err != nil {
		return nil, err
	}
	if sum != xxhash.Sum64(data) {
		return nil, errChecksum
	}
	_, _ = full.Write(data) // never fails
	return data, nil
}

// readData reads so many bytes. It asks for memory as they come, not as size
// claims, and for none beyond size.
func readData(r io.Reader, size int) ([]byte, error) {
	const first = 1 << 20
	data := make([]byte, 0, min(size, first))
	for {
		n, err := io.ReadFull(r, data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err != nil {
			return nil, err
		}
		if len(data) == size {
			return data, nil
		}
		data = append(make([]byte, 0, min(size, 4*cap(data))), data...)
	}
}

func readUint64(r io.Reader) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b[:]), nil
}
