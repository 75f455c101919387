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

	"holdfast.internal/wal"
)

// dataFormat is the format of the identity, and of which files a data directory has,
// that this program writes, and the only one it reads. The files have formats of their
// own (see wal).
const dataFormat = 1

const identityFile = "node.json"

// identity is who a data directory belongs to. That of a node alone is written
// once. That of a member is written when the directory is made, when it promises
// to be of a cluster, and when that cluster is formed.
type identity struct {
	Format    int    `json:"format"`
	Name      string `json:"name"`
	RaftID    string `json:"raft_id"`    // NAME/xxxxxxxx: another directory of that name is another member
	ClusterID string `json:"cluster_id"` // of the cluster that the node is of, or forms; empty in a blank directory
	// Founders are who formed the cluster; a node alone has none. They say nothing
	// of who its members are today.
	Founders []founder `json:"founders,omitempty"`
	// Forming is set from the promise to the bootstrap: not all may have promised.
	Forming bool `json:"forming,omitempty"`
}

// founder is a node that takes part in the formation of a cluster.
type founder struct {
	Name    string `json:"name"`
	Address string `json:"address"` // host:port of its peer port
	RaftID  string `json:"raft_id"`
}

// mintIdentity makes the identity of a new data directory. A member is blank at
// first; a node that is alone is a cluster by itself.
func mintIdentity(name string, member bool) identity {
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // never fails
	id := identity{Format: dataFormat, Name: name, RaftID: name + "/" + hex.EncodeToString(nonce[:])}
	if !member {
		id.ClusterID = uuid.NewString()
	}
	return id
}

// intact fails if no node could run on the directory.
func (id identity) intact() error {
	switch {
	case id.Format != dataFormat:
		return fmt.Errorf("%w: %w", ErrIdentity, wal.CheckFormat(identityFile, id.Format, dataFormat, dataFormat))
	case id.RaftID == "" || id.Forming && len(id.Founders) == 0:
		return fmt.Errorf("%w: %s is incomplete", ErrIdentity, identityFile)
	}
	return nil
}

// fits fails if a node of that name, a member or one that is alone, must not run on the
// directory.
func (id identity) fits(name string, member bool) error {
	switch {
	case id.ClusterID == "" && !member:
		return fmt.Errorf("%w: %s is incomplete", ErrIdentity, identityFile)
	case id.Name != name:
		return fmt.Errorf("%w: it is that of node %q, not of %q", ErrIdentity, id.Name, name)
	case member && id.ClusterID != "" && len(id.Founders) == 0:
		return fmt.Errorf("%w: it is that of a node that runs alone, which cannot become a member", ErrIdentity)
	case !member && len(id.Founders) > 0:
		return fmt.Errorf("%w: it is that of a member of a cluster, and --cluster names no others", ErrIdentity)
	}
	return nil
}

// readIdentity is loadIdentity, and checks that the identity is that of a node of that
// name, a member or one that is alone.
func readIdentity(dir, name string, member bool) (id identity, known bool, err error) {
	id, known, err = loadIdentity(dir)
	if err != nil || !known {
		return id, false, err
	}
	if err := id.fits(name, member); err != nil {
		return id, false, err
	}
	return id, true, nil
}

// loadIdentity reads the identity of dir; false if dir has none yet. It fails with
// ErrIdentity for one that is not intact, and for a directory that has data but no
// identity.
func loadIdentity(dir string) (id identity, known bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return identity{}, false, checkEmpty(dir)
	}
	if err != nil {
		return identity{}, false, fmt.Errorf("read identity: %w", err)
	}
	if err := json.Unmarshal(data, &id); err != nil {
		return identity{}, false, fmt.Errorf("decode %s: %w: %w", identityFile, ErrIdentity, err)
	}
	if err := id.intact(); err != nil {
		return id, false, err
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

// makeDirs makes dir and what is missing above it, all with names that are on disk.
func makeDirs(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(dir)
	if err := makeDirs(above); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return syncDir(above)
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
