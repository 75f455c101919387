package fault_test

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast.internal/jepsen/fault"
)

func TestFileFaults(t *testing.T) {
	tests := []struct {
		name   string
		inject func(path string) error
		want   string
	}{
		{"truncate", func(p string) error { return fault.Truncate(p, 3) }, "abc"},
		{"truncate all", func(p string) error { return fault.Truncate(p, 6) }, ""},
		{"append", func(p string) error { return fault.Append(p, []byte("XY")) }, "abcdefXY"},
		{"zero tail", func(p string) error { return fault.ZeroTail(p, 2) }, "abcd\x00\x00"},
		{"flip bit", func(p string) error { return fault.FlipBit(p, 1, 0) }, "accdef"},
		{"flip high bit", func(p string) error { return fault.FlipBit(p, 5, 7) }, "abcde\xe6"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, []byte("abcdef"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := test.inject(path); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != test.want {
				t.Errorf("got %q %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestFileFaultsStayInsideTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"truncate":  fault.Truncate(path, 4),
		"zero tail": fault.ZeroTail(path, 4),
		"flip bit":  fault.FlipBit(path, 3, 0),
	} {
		if err == nil {
			t.Errorf("%s beyond the file was accepted", name)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "abc" {
		t.Errorf("got %q %v", got, err)
	}
}

func TestNewestFileIsTheLastByName(t *testing.T) {
	dir := t.TempDir()
	if _, err := fault.NewestFile(dir); err == nil {
		t.Error("an empty folder has a newest file")
	}
	for _, name := range []string{"00000000000000000001", "00000000000000000800", "00000000000000000090", "FORMAT"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := fault.NewestFile(dir); err != nil || filepath.Base(got) != "00000000000000000800" {
		t.Errorf("got %s %v", got, err)
	}
}
