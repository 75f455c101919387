package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const here = "127.0.0.1:4566"
	for _, test := range []struct {
		name  string
		trial trial
		want  string // in the error; none if empty
	}{
		{"standard", trial{listen: here, adminListen: here, base: 4570}, ""},
		{"other loopback addresses", trial{listen: "localhost:1", adminListen: "[::1]:1"}, ""},
		{"last ports", trial{listen: here, adminListen: here, base: 65512}, ""},
		{"ports behind the last", trial{listen: here, adminListen: here, base: 65513}, "-base 65513: want 0 to 65512"},
		{"ports before the first", trial{listen: here, adminListen: here, base: -1}, "-base -1"},
		{"open", trial{listen: "0.0.0.0:4566", adminListen: here}, "-listen 0.0.0.0:4566 is open to the network"},
		{"open, all addresses", trial{listen: ":4566", adminListen: here}, "-listen :4566 is open to the network"},
		{"open admin port", trial{listen: here, adminListen: "10.0.0.1:4567"}, "-admin 10.0.0.1:4567 is open to the network"},
		{"open by a name", trial{listen: "example.com:4566", adminListen: here}, "or say -insecure"},
		{"open on purpose", trial{listen: "0.0.0.0:4566", adminListen: ":4567", insecure: true}, ""},
		{"no port", trial{listen: "127.0.0.1", adminListen: here}, "want HOST:PORT"},
	} {
		err := test.trial.check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

// TestReason: the last line of a node that ended itself is told, not that of an earlier
// run, and none of one that was killed.
func TestReason(t *testing.T) {
	tr := &trial{data: t.TempDir()}
	const before = "an earlier run\n"
	for _, test := range []struct{ name, script, logged, want string }{
		{"ended itself", "exit 1", "listening\nport in use\n", ": port in use"},
		{"said nothing", "exit 1", "", ""},
		{"was killed", "kill -9 $$", "listening\n", ""},
		{"was stopped", "exit 0", "stopped\n", ""},
	} {
		if err := os.WriteFile(filepath.Join(tr.data, "n1.log"), []byte(before+test.logged), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", test.script)
		_ = cmd.Run() // how it ended is in ProcessState
		if got := tr.reason(1, cmd.ProcessState, int64(len(before))); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
