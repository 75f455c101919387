package wal

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
)

// manifestFile is the third file of a snapshot whose bodies are in segments.
const manifestFile = "bodies.json"

const manifestFormat = 1

// manifest names the segments of a snapshot, in ascending order. Its xxhash64
// is in the snapshot's meta.
type manifest struct {
	Format   int            `json:"format"`
	Segments []segmentFacts `json:"segments"`
}

func newManifest(segments []*bodySegment) manifest {
	m := manifest{Format: manifestFormat, Segments: make([]segmentFacts, len(segments))}
	for i, s := range segments {
		m.Segments[i] = s.segmentFacts
	}
	return m
}

// encode returns the bytes of the file and their checksum.
func (m manifest) encode() (data []byte, sum string, err error) {
	data, err = json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, "", err
	}
	data = append(data, '\n')
	return data, formatChecksum(xxhash.Sum64(data)), nil
}

// readManifest reads the manifest of the snapshot in dir, whose checksum is sum.
func readManifest(dir, sum string) (manifest, error) {
	var m manifest
	path := filepath.Join(dir, manifestFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return m, corrupt(path, 0, "the file is missing")
	}
	if err != nil {
		return m, err
	}
	if formatChecksum(xxhash.Sum64(data)) != sum {
		return m, corrupt(path, 0, "%v", errChecksum)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, corrupt(path, 0, "%v", err)
	}
	if err := CheckFormat(path, m.Format, manifestFormat, manifestFormat); err != nil {
		return m, err
	}
	var limit uint64
	for _, s := range m.Segments {
		if s.First < limit || s.Limit <= s.First || s.Count == 0 {
			return m, corrupt(path, 0, "segment %d: %v", s.Serial, errBodyNumber)
		}
		limit = s.Limit
	}
	return m, nil
}
