package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
)

// mutant is a change of one expression or statement.
type mutant struct {
	file       *source
	line       int
	function   string // that it is in
	start, end int    // offsets of what it replaces
	was, is    string // for people
	// write returns the text that does either, by the number of the mutant; text
	// gives a part of the source with the other mutants that are inside it.
	write func(text func(start, end int) string, number int) string
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d in %s: %s", m.file.name, m.line, m.function, m.change())
}

func (m *mutant) change() string { return m.was + " -> " + m.is }

// key names a mutant in survivors.txt; it outlives changes elsewhere in the file.
func (m *mutant) key() string { return m.file.name + " " + m.function + ": " + m.change() }

// draw says which mutants are tried.
type draw struct {
	most  int
	seed  uint64
	again map[string]bool // if not nil, the keys of the only ones
}

// from returns the mutants in the order of their places, outer ones first.
func (d draw) from(all []*mutant) []*mutant {
	drawn := slices.Clone(all)
	if d.again != nil {
		drawn = slices.DeleteFunc(drawn, func(m *mutant) bool { return !d.again[m.key()] })
	} else {
		rand.New(rand.NewPCG(d.seed, 0)).Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
		drawn = drawn[:min(d.most, len(drawn))]
	}
	slices.SortFunc(drawn, func(a, b *mutant) int {
		return cmp.Or(cmp.Compare(a.file.name, b.file.name), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	return drawn
}

// livesLine is a line of the output about a mutant that no test missed.
var livesLine = regexp.MustCompile(`(?m)^LIVES: ([^:]+):\d+ in (.*)$`)

// survivorsOf returns the keys of the mutants that live by an earlier output; nil
// for the output "".
func survivorsOf(output string) map[string]bool {
	if output == "" {
		return nil
	}
	keys := map[string]bool{}
	for _, m := range livesLine.FindAllStringSubmatch(output, -1) {
		keys[m[1]+" "+m[2]] = true
	}
	return keys
}

// readExcuses reads lines of key, " # ", reason.
func readExcuses(path string) (map[string]string, error) {
	excuses := map[string]string{}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return excuses, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open list of survivors: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, reason, ok := strings.Cut(lines.Text(), " # ")
		switch {
		case ok:
			excuses[key] = reason
		case lines.Text() != "":
			return nil, fmt.Errorf("%s: %q has no reason", path, lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read list of survivors: %w", err)
	}
	return excuses, nil
}
