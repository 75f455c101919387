package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "holdfast.internal"

// room says what a top-level folder may import. The picture of it is in
// README.md.
type room struct {
	rooms    []string // of this module
	external []string // prefixes of modules beside the standard library
	std      []string // if not nil, the only packages of the standard library
}

// pureStd is what a pure state machine may use of the standard library.
var pureStd = []string{
	"bytes", "cmp", "container/heap", "crypto/md5", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex",
	"errors", "fmt", "iter", "maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "time", "unicode",
	"unicode/utf8",
}

const raftModule = "github.com/hashicorp/raft"

var layers = map[string]room{
	"sqs":     {std: pureStd},
	"sns":     {std: pureStd},
	"wal":     {external: []string{raftModule, "github.com/tidwall/wal", "go.etcd.io/bbolt", "github.com/cespare/xxhash", "golang.org/x/sys"}},
	"raftfsm": {rooms: []string{"sqs", "sns"}, external: []string{raftModule, "github.com/cespare/xxhash"}},
	"cluster": {
		rooms:    []string{"raftfsm", "sqs", "sns", "wal"},
		external: []string{raftModule, "github.com/hashicorp/go-hclog", "github.com/google/uuid", "golang.org/x/sys"},
	},
	"httpapi": {
		rooms:    []string{"cluster", "raftfsm", "sqs", "sns"},
		external: []string{"github.com/valyala", "github.com/prometheus/client_golang", "golang.org/x/sys"},
	},
	"jepsen": {external: []string{"github.com/anishathalye/porcupine", "github.com/aws", "github.com/valyala", "golang.org/x/sys"}},
	"cmd/holdfast": {
		rooms:    []string{"httpapi", "cluster", "raftfsm", "sqs", "sns", "wal", "jepsen"},
		external: []string{"github.com/alecthomas/kong", "github.com/mattn/go-isatty", raftModule, "go.yaml.in/yaml"},
	},
}

func TestLayers(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		importer := roomOf(fields[0])
		rules, known := layers[importer]
		if !known {
			t.Errorf("%s: not in the list of layers", fields[0])
		}
		seen[importer] = true
		for _, imported := range fields[1:] {
			if !rules.allow(importer, imported) {
				t.Errorf("%s must not import %s", fields[0], imported)
			}
		}
	}
	for name := range layers {
		if !seen[name] {
			t.Errorf("room %s: got no package, want one with at least a doc.go", name)
		}
	}
}

func (r room) allow(importer, imported string) bool {
	if imported == module || strings.HasPrefix(imported, module+"/") {
		return roomOf(imported) == importer || slices.Contains(r.rooms, roomOf(imported))
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return r.std == nil || slices.Contains(r.std, imported)
	}
	return slices.ContainsFunc(r.external, func(prefix string) bool {
		return imported == prefix || strings.HasPrefix(imported, prefix+"/") || strings.HasPrefix(imported, prefix+"-")
	})
}

// roomOf is the top-level folder of a package; a folder's own subpackages are
// its own affair.
func roomOf(importPath string) string {
	name := strings.TrimPrefix(importPath, module+"/")
	if strings.HasPrefix(name, "cmd/") {
		return name
	}
	top, _, _ := strings.Cut(name, "/")
	return top
}
