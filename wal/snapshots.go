package wal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"
)

var _ raft.SnapshotStore = (*Snapshots)(nil)

// The names in the directory of snapshots: each snapshot is a directory
// <term>-<index>-<unique> with two files, or three (manifestFile), and has
// tmpSuffix until it is whole.
const (
	metaFile  = "meta.json"
	stateFile = "state.bin"
	tmpSuffix = ".tmp"
)

// metaFormat is the version of meta.json.
const metaFormat = 1

// SnapshotOptions is the configuration of Snapshots; the zero value is usable.
type SnapshotOptions struct {
	// Logger is told what is removed, and what could not be. Default: none.
	Logger *slog.Logger
	// Segments is where the bodies are to which snapshots refer. It must be fresh.
	// Without it only the state of such a snapshot can be read (see Open).
	Segments *Segments

	files files // tests
}

func (o SnapshotOptions) withDefaults() SnapshotOptions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.files == nil {
		o.files = osFiles{}
	}
	return o
}

// snapshotMeta is meta.json. Checksums are xxhash64 in hexadecimal.
type snapshotMeta struct {
	Format             int                `json:"format"`
	Version            int                `json:"version"` // raft.SnapshotVersion
	ID                 string             `json:"id"`
	Index              uint64             `json:"index"`
	Term               uint64             `json:"term"`
	Configuration      raft.Configuration `json:"configuration"`
	ConfigurationIndex uint64             `json:"configuration_index"`
	Size               int64              `json:"size"`               // of state.bin, bytes
	Checksum           string             `json:"checksum"`           // of state.bin
	Manifest           string             `json:"manifest,omitempty"` // checksum of it; empty: there is none
	MetaChecksum       string             `json:"meta_checksum"`      // of this with an empty MetaChecksum
}

func (m snapshotMeta) checksum() (string, error) {
	m.MetaChecksum = ""
	b, err := json.Marshal(m)
	return formatChecksum(xxhash.Sum64(b)), err
}

// encode returns the bytes of meta.json.
func (m snapshotMeta) encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

func formatChecksum(sum uint64) string { return fmt.Sprintf("%016x", sum) }

// finishedSnapshot is a durable one.
type finishedSnapshot struct {
	snapshotMeta
	segments []*bodySegment // held; of those in the manifest
}

// raftMeta has the size of the stream that Open gives.
func (f finishedSnapshot) raftMeta() *raft.SnapshotMeta {
	size := f.Size
	if f.Manifest != "" {
		size = transferSize(f.Size, f.segments)
	}
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersion(f.Version), ID: f.ID, Index: f.Index, Term: f.Term,
		Configuration: f.Configuration, ConfigurationIndex: f.ConfigurationIndex, Size: size,
	}
}

// older reports whether m is of an earlier state than n.
func (m snapshotMeta) older(n snapshotMeta) bool {
	return m.Index < n.Index || m.Index == n.Index && m.Term < n.Term
}

// Snapshots is the store of raft snapshots. It is safe for concurrent use.
//
// Only the newest one is kept. It is never passed over for an older one, if it is
// damaged or the machine refuses it: raft would then start from a state that the
// log no longer reaches back to. Once damage was found, List and Open return
// ErrCorrupt for ever.
type Snapshots struct {
	dir     string
	options SnapshotOptions

	mu     sync.Mutex
	newest *finishedSnapshot // nil: there is none
	serial uint64            // the last one used in a name
	damage error
}

// OpenSnapshots opens the store in dir, which it creates if it is missing; the
// parent of dir must exist. It verifies the newest snapshot whole (ErrCorrupt if it
// is damaged), and then removes older ones and what unfinished ones left.
func OpenSnapshots(dir string, o SnapshotOptions) (*Snapshots, error) {
	s := &Snapshots{dir: dir, options: o.withDefaults()}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	return s, nil
}

func (s *Snapshots) open() error {
	if err := makeDir(s.options.files, s.dir); err != nil {
		return err
	}
	names, err := snapshotNames(s.dir)
	if err != nil {
		return err
	}
	finished := sortedSnapshots(names)
	if len(finished) > 0 {
		if err := s.openNewest(finished[0]); err != nil {
			return err
		}
	}
	for _, name := range names {
		s.serial = max(s.serial, name.serial)
		if len(finished) > 0 && name == finished[0] {
			continue
		}
		if err := s.remove(name.text); err != nil {
			return err
		}
		s.options.Logger.Info("snapshot removed, which is older or unfinished", "snapshot", name.text)
	}
	if s.options.Segments == nil {
		return nil
	}
	return s.options.Segments.removeOrphans()
}

// openNewest verifies the newest snapshot, and opens its segments.
func (s *Snapshots) openNewest(name snapshotName) error {
	m, err := readMeta(s.dir, name)
	if err != nil {
		return err
	}
	if err := verifyState(s.statePath(m.ID), m); err != nil {
		return err
	}
	segments, err := s.openManifest(m)
	if err != nil {
		return err
	}
	s.newest = &finishedSnapshot{m, segments}
	return nil
}

// openManifest opens the segments of a snapshot.
func (s *Snapshots) openManifest(m snapshotMeta) ([]*bodySegment, error) {
	if m.Manifest == "" || s.options.Segments == nil {
		return nil, nil
	}
	bodies, err := readManifest(filepath.Join(s.dir, m.ID), m.Manifest)
	if err != nil {
		return nil, err
	}
	return s.options.Segments.adopt(bodies.Segments)
}

// remove removes a snapshot, finished or not. One that is removed only in part does
// not look like one.
func (s *Snapshots) remove(name string) error {
	path := filepath.Join(s.dir, name)
	if unfinished := strings.TrimSuffix(path, tmpSuffix) + tmpSuffix; unfinished != path {
		if err := s.options.files.rename(path, unfinished); err != nil {
			return fmt.Errorf("remove snapshot: %w", err)
		}
		path = unfinished
	}
	if err := s.options.files.removeAll(path); err != nil {
		return fmt.Errorf("remove snapshot: %w", err)
	}
	return nil
}

// pace calls write as Segments.pace does: states share the disk with the log as well,
// and Stop ends them.
func (s *Snapshots) pace(write func() error) error {
	if s.options.Segments == nil {
		return write()
	}
	return s.options.Segments.pace(write)
}

func (s *Snapshots) statePath(id string) string { return filepath.Join(s.dir, id, stateFile) }

// snapshotName is the parsed name of a snapshot's directory.
type snapshotName struct {
	text                string
	term, index, serial uint64
	tmp                 bool
}

// snapshotNames lists the snapshots in dir, unfinished ones too. Other names
// are left alone.
func snapshotNames(dir string) ([]snapshotName, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []snapshotName
	for _, entry := range found {
		if name, ok := parseSnapshotName(entry.Name()); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func parseSnapshotName(text string) (snapshotName, bool) {
	id, tmp := strings.CutSuffix(text, tmpSuffix)
	parts := strings.Split(id, "-")
	if len(parts) != 3 {
		return snapshotName{}, false
	}
	var numbers [3]uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return snapshotName{}, false
		}
		numbers[i] = n
	}
	return snapshotName{text: text, term: numbers[0], index: numbers[1], serial: numbers[2], tmp: tmp}, true
}

func snapshotID(term, index, serial uint64) string {
	return fmt.Sprintf("%d-%d-%d", term, index, serial)
}

// sortedSnapshots are the finished ones, newest first.
func sortedSnapshots(names []snapshotName) []snapshotName {
	finished := slices.DeleteFunc(slices.Clone(names), func(n snapshotName) bool { return n.tmp })
	slices.SortFunc(finished, newestFirst)
	return finished
}

func newestFirst(a, b snapshotName) int {
	switch {
	case a.index != b.index:
		return compareDown(a.index, b.index)
	case a.term != b.term:
		return compareDown(a.term, b.term)
	}
	return compareDown(a.serial, b.serial)
}

func compareDown(a, b uint64) int {
	if a > b {
		return -1
	}
	return 1
}

// readMeta reads and verifies a meta file, and the size of the state.
func readMeta(dir string, name snapshotName) (snapshotMeta, error) {
	var m snapshotMeta
	path := filepath.Join(dir, name.text, metaFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return m, corrupt(path, 0, "the file is missing")
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, corrupt(path, 0, "%v", err)
	}
	format := m.Format
	m.Format = metaFormat
	if sum, err := m.checksum(); err != nil || sum != m.MetaChecksum {
		if err := CheckFormat(path, format, metaFormat, metaFormat); err != nil {
			return m, err // what another format has besides, and where its checksum is, nobody knows
		}
		return m, corrupt(path, 0, "%v", errChecksum)
	}
	if format != metaFormat {
		return m, corrupt(path, 0, "format %d in a file of format %d", format, metaFormat)
	}
	// The checksum is of what was read: a name that is damaged is not missed where
	// the value is 0, nor the case of a letter anywhere.
	if written, err := m.encode(); err != nil || !bytes.Equal(written, b) {
		return m, corrupt(path, 0, "%v", errChecksum)
	}
	if m.ID != name.text || m.Index != name.index || m.Term != name.term {
		return m, corrupt(path, 0, "it describes snapshot %s", m.ID)
	}
	return m, checkSize(filepath.Join(dir, name.text, stateFile), m.Size)
}

func checkSize(path string, size int64) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return corrupt(path, 0, "the file is missing")
	}
	if err != nil {
		return err
	}
	if info.Size() != size {
		return corrupt(path, min(info.Size(), size), "it has %d bytes, %d were written", info.Size(), size)
	}
	return nil
}

// verifyState reads a state file whole and compares it with its meta.
func verifyState(path string, m snapshotMeta) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return verifyOpenState(f, path, m)
}

func verifyOpenState(f io.Reader, path string, m snapshotMeta) error {
	sum := xxhash.New()
	n, err := io.CopyBuffer(sum, struct{ io.Reader }{f}, make([]byte, pieceSize))
	if err != nil {
		return fmt.Errorf("read snapshot %s: %w", m.ID, err)
	}
	if n != m.Size {
		return corrupt(path, min(n, m.Size), "it has %d bytes, %d were written", n, m.Size)
	}
	if got := formatChecksum(sum.Sum64()); got != m.Checksum {
		return corrupt(path, 0, "%v", errChecksum)
	}
	return nil
}

// List returns the newest snapshot, if there is any.
func (s *Snapshots) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage != nil {
		return nil, s.damage
	}
	if s.newest == nil {
		return nil, nil
	}
	return []*raft.SnapshotMeta{s.newest.raftMeta()}, nil
}

// Open returns a reader of exactly Size bytes, after it verified the state. The
// reader stays good if the snapshot is removed meanwhile.
//
// It gives what was written to the snapshot. If bodies of it are in segments, it
// gives a stream of state and bodies, which another node's sink takes apart
// again; for a node that restores its own snapshot, the reader then has the
// method StateReader() io.ReadCloser, which gives what was written, without the
// bodies.
func (s *Snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	finished, f, err := s.openState(id)
	if err != nil {
		return nil, nil, fmt.Errorf("open snapshot %s: %w", id, err)
	}
	err = verifyOpenState(f, s.statePath(id), finished.snapshotMeta)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		s.noteDamage(err)
		if s.options.Segments != nil {
			s.options.Segments.release(finished.segments)
		}
		return nil, nil, errors.Join(fmt.Errorf("open snapshot %s: %w", id, err), f.Close())
	}
	if finished.Manifest == "" {
		return finished.raftMeta(), f, nil
	}
	sum, err := strconv.ParseUint(finished.Checksum, 16, 64)
	if err != nil { // it was compared with that of the state
		panic("wal: checksum of a verified snapshot: " + err.Error())
	}
	return finished.raftMeta(), newSnapshotReader(s.options.Segments, finished.segments, f, finished.Size, sum), nil
}

// openState opens the file, and holds the segments, before a newer snapshot can
// remove them.
func (s *Snapshots) openState(id string) (finishedSnapshot, *os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage != nil {
		return finishedSnapshot{}, nil, s.damage
	}
	if s.newest == nil || s.newest.ID != id {
		return finishedSnapshot{}, nil, os.ErrNotExist
	}
	f, err := os.Open(s.statePath(id))
	if errors.Is(err, os.ErrNotExist) {
		s.damage = corrupt(s.statePath(id), 0, "the file is missing")
		return finishedSnapshot{}, nil, s.damage
	}
	if err == nil && s.options.Segments != nil {
		s.options.Segments.hold(s.newest.segments)
	}
	return *s.newest, f, err
}

func (s *Snapshots) noteDamage(err error) {
	if !errors.Is(err, ErrCorrupt) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage == nil {
		s.damage = err
	}
}

// Create begins a snapshot. It becomes visible, and durable, when the sink is
// closed.
func (s *Snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	if version != raft.SnapshotVersionMax {
		return nil, fmt.Errorf("create snapshot: version %d is not supported", version)
	}
	s.mu.Lock()
	s.serial++
	id := snapshotID(term, index, s.serial)
	s.mu.Unlock()
	k, err := newSink(s, snapshotMeta{
		Format: metaFormat, Version: int(version), ID: id, Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	})
	if err != nil {
		return nil, fmt.Errorf("create snapshot %s: %w", id, err)
	}
	return k, nil
}

// publish gives a finished snapshot its name, unless a newer one is there, and
// removes the one before. It returns the segments that this has held, for the
// caller to release.
func (s *Snapshots) publish(finished finishedSnapshot) (freed []*bodySegment, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.newest
	if before != nil && finished.older(before.snapshotMeta) {
		return nil, fmt.Errorf("%w: %s", ErrStaleSnapshot, before.ID)
	}
	f, path := s.options.files, filepath.Join(s.dir, finished.ID)
	if err := f.rename(path+tmpSuffix, path); err != nil {
		return nil, err
	}
	if err := f.syncDir(s.dir); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsettled, err)
	}
	if len(finished.segments) > 0 {
		s.options.Segments.hold(finished.segments)
	}
	s.newest = &finished
	if before == nil {
		return nil, nil
	}
	if err := s.remove(before.ID); err != nil { // the next start tries again
		s.options.Logger.Warn("old snapshot not removed", "err", err)
	}
	return before.segments, nil
}
