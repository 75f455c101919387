package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/cockroachdb/datadriven"
)

// The environment of whoever runs the tests is not theirs.
func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "HOLDFAST_") {
			_ = os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}

// TestCommandLine runs the lines of testdata/commandline and compares exit code
// and output. What is on stderr is marked as such.
func TestCommandLine(t *testing.T) {
	t.Setenv("COLUMNS", "100")
	datadriven.RunTest(t, "testdata/commandline", func(t *testing.T, d *datadriven.TestData) string {
		ctx, cancel := context.WithTimeout(t.Context(), patience) // none of them should serve
		defer cancel()
		var stdout, stderr bytes.Buffer
		code := run(ctx, strings.Fields(d.Input), strings.NewReader(""), &stdout, &stderr)
		var out strings.Builder
		fmt.Fprintf(&out, "exit %d\n", code)
		for line := range strings.Lines(stderr.String()) {
			out.WriteString("stderr: " + line)
		}
		out.WriteString(stdout.String())
		return out.String()
	})
}

// newTestParser is a parser whose grammar the test can look at.
func newTestParser(t *testing.T) (*kong.Kong, *grammar) {
	t.Helper()
	g := &grammar{}
	parser, err := newParser(g, func(int) {}, os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return parser, g
}

func TestEveryFlagHasAnEnvironmentTwin(t *testing.T) {
	parser, _ := newTestParser(t)
	for _, command := range parser.Model.Leaves(false) {
		for _, flag := range command.Flags {
			if flag.Name == "help" {
				continue
			}
			if command.Name == "bench" && flag.Name == "json" {
				continue // a file here, yes or no everywhere else: HOLDFAST_BENCH_JSON
			}
			if command.Name == "trace" && flag.Name == "data" && slices.Equal(flag.Envs, []string{"HOLDFAST_TRACE_DATA"}) {
				continue // HOLDFAST_DATA is that of the running node, which would not be asked
			}
			if twin := "HOLDFAST_" + strings.ToUpper(command.Name) + "_LIMIT"; flag.Name == "limit" && slices.Equal(flag.Envs, []string{twin}) {
				continue // the limits of peek and redrive have nothing in common
			}
			want := "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
			if len(flag.Envs) != 1 || flag.Envs[0] != want {
				t.Errorf("%s --%s: got twin %v, want %s", command.Path(), flag.Name, flag.Envs, want)
			}
		}
	}
}

func TestConfigPrecedence(t *testing.T) {
	const (
		inDefault = "1m0s"
		inFile    = "11s"
		inEnv     = "12s"
		inLine    = "13s"
	)
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	writeFile(t, file, "purge-wait: "+inFile+"\n")
	tests := []struct {
		name string
		env  string
		args []string
		want string
	}{
		{name: "default", want: inDefault},
		{name: "file beats default", args: []string{"--config", file}, want: inFile},
		{name: "environment beats file", env: inEnv, args: []string{"--config", file}, want: inEnv},
		{name: "command line beats environment", env: inEnv, args: []string{"--config", file, "--purge-wait", inLine}, want: inLine},
		{name: "command line beats file", args: []string{"--purge-wait", inLine, "--config", file}, want: inLine},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.env != "" {
				t.Setenv("HOLDFAST_PURGE_WAIT", test.env)
			}
			parser, g := newTestParser(t)
			if _, err := parser.Parse(append([]string{"serve"}, test.args...)); err != nil {
				t.Fatal(err)
			}
			if got := g.Serve.PurgeWait.String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestConfigFileFromEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "holdfast.json")
	writeFile(t, file, `{"account": "012345678901", "trusted-proxy": ["10.0.0.0/8", "::1/128"], "insecure": true, "inflight-limit": 7}`)
	t.Setenv("HOLDFAST_CONFIG", file)
	parser, g := newTestParser(t)
	if _, err := parser.Parse([]string{"serve"}); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(g.Serve.Account, g.Serve.TrustedProxy, g.Serve.Insecure, g.Serve.InflightLimit)
	if want := "012345678901 [10.0.0.0/8 ::1/128] true 7\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestConfigFileIsMissing(t *testing.T) {
	parser, _ := newTestParser(t)
	if _, err := parser.Parse([]string{"serve", "--config", filepath.Join(t.TempDir(), "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want %v", err, fs.ErrNotExist)
	}
}

func TestConfigFileErrors(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"unknown key", "purge_wait: 3s", `"purge_wait" is not the name of a flag of serve`},
		{"flag of another command", "floor: true", `"floor" is not the name of a flag of serve`},
		{"a file in the file", "config: other.yaml", `"config" is not the name of a flag of serve`},
		{"nested", "tls: {cert: a}", "tls: line 1: neither a value nor a list of values"},
		{"nested list", "trusted-proxy: [[a]]", "trusted-proxy: line 1: a list holds plain values only"},
		{"bad value", "purge-wait: soon", "purge-wait"},
		{"not YAML", "a: b: c", "read config file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "holdfast.yaml")
			writeFile(t, file, test.text)
			parser, _ := newTestParser(t)
			_, err := parser.Parse([]string{"serve", "--config", file})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// An account of digits only would lose its zeros if it went through a number.
func TestConfigFileKeepsText(t *testing.T) {
	resolver, err := readConfigFile(strings.NewReader("account: 000000000012"))
	if err != nil {
		t.Fatal(err)
	}
	if got := resolver.(configFile)["account"]; got != "000000000012" {
		t.Errorf("got %s, want 000000000012", got)
	}
}

// What --print-config prints is a config file that gives the same.
func TestPrintConfigIsAConfigFile(t *testing.T) {
	first := printConfig(t, "--memory", "3GiB", "--trusted-proxy", "10.0.0.0/8,::1/128", "--insecure", "--listen", ":1")
	file := filepath.Join(t.TempDir(), "holdfast.json")
	writeFile(t, file, first)
	if second := printConfig(t, "--config", file); second != first {
		t.Errorf("got %s, want %s", second, first)
	}
}

func printConfig(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"serve", "--print-config"}, args...)
	if code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("run %v: got exit %d, want 0: %s", args, code, stderr.String())
	}
	return stdout.String()
}

func TestByteSize(t *testing.T) {
	tests := []struct {
		text string
		want byteSize // -1: an error
	}{
		{"0", 0},
		{"1024", 1 << 10},
		{"1KiB", 1 << 10},
		{"1 GiB", 1 << 30},
		{"2GB", 2e9},
		{"7B", 7},
		{"8388607TiB", 8388607 << 40},
		{"8388608TiB", -1},
		{"9223372036854775807", 1<<63 - 1},
		{"-1", -1},
		{"GiB", -1},
		{"1.5GiB", -1},
		{"", -1},
	}
	for _, test := range tests {
		got, err := parseByteSize(test.text)
		if err != nil {
			got = -1
		}
		if got != test.want {
			t.Errorf("%q: got %d, want %d", test.text, got, test.want)
		}
		if again, err := parseByteSize(got.String()); got >= 0 && (err != nil || again != got) {
			t.Errorf("%q: String is %q, which reads as %d (%v)", test.text, got, again, err)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
