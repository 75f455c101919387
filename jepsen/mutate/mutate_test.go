package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Of a package with a mutant in every kind of place, among them places inside each
// other, every single mutant is there: switched on, it changes what the program
// prints, and switched off nothing does.
func TestEveryMutantIsThere(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module sample\n\ngo 1.26\n")
	write("sample.go", `package sample

func Describe(a, b int, yes bool) (s string) {
	n := a + b*2
	if a < b && !(b <= 3) || yes {
		s += "if "
	}
	switch {
	case a == b:
		n++
	case n%2 == 1:
		n -= 5
	}
	for i := 0; i < n; i++ {
		s += string(rune('a' + i))
	}
	return s
}
`)
	write("sample_test.go", `package sample

import "testing"

func TestModel(t *testing.T) {}

func TestDescribe(t *testing.T) {
	got := ""
	for a := range 6 {
		for b := range 6 {
			got += Describe(a, b, false) + Describe(a, b, true) + "/"
		}
	}
	t.Log(got)
}
`)
	p, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	drawn := draw{most: len(p.mutants), seed: 7}.from(p.mutants)
	if len(drawn) != 19 {
		t.Fatalf("got %d mutants, want 19: %v", len(drawn), drawn)
	}
	t.Chdir(dir)
	p.dir = "."
	for _, s := range p.sources {
		s.path = s.name
	}
	binary, err := p.build(t.TempDir(), drawn)
	if err != nil {
		t.Fatal(err)
	}
	output := func(number string) string {
		c := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run=Describe", "-test.timeout=10s")
		c.Env = append(os.Environ(), switchName+"="+number)
		text, _ := c.CombinedOutput() // a mutant may panic or loop
		_, after, _ := strings.Cut(string(text), "=== RUN")
		before, _, _ := strings.Cut(after, "--- PASS")
		return before
	}
	plain := output("0")
	for i, m := range drawn {
		if got := output(strconv.Itoa(i + 1)); got == plain {
			t.Errorf("%s changes nothing", m)
		}
	}
	if output(strconv.Itoa(len(drawn)+1)) != plain {
		t.Error("a mutant acts that is switched off")
	}
}

func TestSurvivorsOf(t *testing.T) {
	keys := survivorsOf("killed in 1s: a.go:1 in f: x -> y\nLIVES: a.go:12 in T.g: a == b -> a != b\n1 of 2\n")
	if len(keys) != 1 || !keys["a.go T.g: a == b -> a != b"] {
		t.Errorf("got %v", keys)
	}
}
