package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestIdentityIsMintedOnce(t *testing.T) {
	dir := t.TempDir()
	if _, known, err := readIdentity(dir, "n1", false); known || err != nil {
		t.Fatalf("empty directory: got %v, %v; want none", known, err)
	}
	minted := mintIdentity("n1", false)
	if err := minted.write(dir); err != nil {
		t.Fatal(err)
	}
	got, known, err := readIdentity(dir, "n1", false)
	if err != nil || !known || !reflect.DeepEqual(got, minted) {
		t.Errorf("got %+v, %v, %v; want %+v", got, known, err, minted)
	}
	if id := got.RaftID; !strings.HasPrefix(id, "n1/") || len(id) != len("n1/xxxxxxxx") {
		t.Errorf("got raft id %q, want n1/xxxxxxxx", id)
	}
	if other := mintIdentity("n1", false); other.RaftID == minted.RaftID || other.ClusterID == minted.ClusterID {
		t.Errorf("two directories are both %+v", other)
	}
}

func TestIdentityRefuses(t *testing.T) {
	for _, test := range []struct {
		name string
		file string // content of node.json; empty: none
		log  bool   // there is a log
	}{
		{name: "another name", file: `{"format":1,"name":"n2","raft_id":"n2/00000000","cluster_id":"c"}`},
		{name: "newer format", file: `{"format":2,"name":"n1","shape":"unknown"}`},
		{name: "no raft id", file: `{"format":1,"name":"n1","cluster_id":"c"}`},
		{name: "torn", file: `{"format":1,"na`},
		{name: "log without identity", log: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if test.file != "" {
				if err := os.WriteFile(filepath.Join(dir, identityFile), []byte(test.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if test.log {
				if err := os.MkdirAll(filepath.Join(dir, logDir, "segment"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := readIdentity(dir, "n1", false)
			if !errors.Is(err, ErrIdentity) || ExitCode(err) != ExitIdentity {
				t.Errorf("got %v with exit code %d, want %v", err, ExitCode(err), ErrIdentity)
			}
		})
	}
}

func TestMakeDirs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := makeDirs(dir); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("got %v, %v; want a directory for the owner alone", info, err)
	}
	if err := makeDirs(filepath.Join(dir, "c\x00")); err == nil {
		t.Error("a name that cannot be was made")
	}
}
