package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"
)

// dataFormat is the version of the data directory that this program writes, and
// the newest that it reads.
const dataFormat = 1

const identityFile = "node.json"

// identity is who a data directory belongs to. It is written once.
type identity struct {
	Format    int    `json:"format"`
	Name      string `json:"name"`
	RaftID    string `json:"raft_id"`    // NAME/xxxxxxxx: another directory of that name is another member
	ClusterID string `json:"cluster_id"` // of the cluster that the node is of, or forms
}

// newIdentity mints the identity of a new data directory.
func newIdentity(name string) identity {
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return identity{
		Format:    dataFormat,
		Name:      name,
		RaftID:    name + "/" + hex.EncodeToString(nonce[:]),
		ClusterID: uuid.NewString(),
	}
}

// readIdentity reads the identity of dir and checks that it is name's and of a
// known format; false if dir has none yet. It fails with ErrIdentity for a
// directory that has data but no identity.
func readIdentity(dir, name string) (identity, bool, error) {
	data, err := os.ReadFile(filepath.Join(dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return identity{}, false, checkEmpty(dir)
	}
	if err != nil {
		return identity{}, false, fmt.Errorf("read identity: %w", err)
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return identity{}, false, fmt.Errorf("decode %s: %w: %w", identityFile, ErrIdentity, err)
	}
	switch {
	case id.Format > dataFormat:
		return id, false, fmt.Errorf("%w: format %d, this version knows up to %d", ErrIdentity, id.Format, dataFormat)
	case id.Format < 1 || id.RaftID == "" || id.ClusterID == "":
		return id, false, fmt.Errorf("%w: %s is incomplete", ErrIdentity, identityFile)
	case id.Name != name:
		return id, false, fmt.Errorf("%w: it is that of node %q, not of %q", ErrIdentity, id.Name, name)
	}
	return id, true, nil
}

// checkEmpty fails if dir holds a log or snapshots: they were written by a node
// whose identity is lost, and under another one it could vote twice.
func checkEmpty(dir string) error {
	for _, sub := range []string{logDir, snapshotDir} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look into %s: %w", sub, err)
		}
		if len(entries) > 0 {
			return fmt.Errorf("%w: there is data in %s, but no %s", ErrIdentity, sub, identityFile)
		}
	}
	return nil
}

// write puts the identity into dir for good.
func (id identity) write(dir string) error {
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	path := filepath.Join(dir, identityFile)
	if err := writeSynced(path+".tmp", append(data, '\n')); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}

// writeSynced writes a file and waits until it is on disk.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir waits until the names in dir are on disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
