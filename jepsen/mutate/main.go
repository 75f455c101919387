// Command mutate asks whether a test fails when a line of a package is broken:
//
//	go run ./jepsen/mutate [-mutants 400] [-seed 1] ./sqs
//
// It draws mutants, builds the package's tests once with all of them, switched
// off, and runs the short tests for each mutant with that one switched on. So a
// mutant costs a run of the tests and no build. A mutant that no test misses is
// printed, unless testdata/survivors.txt of the package says why it may live.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

const (
	// enough is the share of killed mutants below which the command fails.
	enough = 0.85
	// A mutant may loop, or grow without end: its tests may take slower times the
	// processor time of a run without a mutant, and memoryKiB.
	slower, memoryKiB = 3, 6 << 20
	// switchName is the variable that tells a test binary its mutant.
	switchName = "HOLDFAST_MUTANT"
)

func main() {
	mutants := flag.Int("mutants", 400, "how many mutants are drawn")
	seed := flag.Uint64("seed", 1, "another draw")
	from := flag.String("from", "", "instead of a draw, the mutants that live by this file, an earlier output")
	list := flag.Bool("list", false, "print the drawn mutants and end")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	earlier, err := os.ReadFile(*from)
	if err != nil && *from != "" {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
	if err := run(os.Stdout, flag.Arg(0), draw{*mutants, *seed, survivorsOf(string(earlier))}, *list); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir string, d draw, list bool) error {
	p, err := load(dir)
	if err != nil {
		return err
	}
	excused, err := readExcuses(filepath.Join(dir, "testdata", "survivors.txt"))
	if err != nil {
		return err
	}
	drawn := d.from(p.mutants)
	if list {
		for _, m := range drawn {
			_, _ = fmt.Fprintln(out, m)
		}
		return nil
	}
	work, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	binary, err := p.build(work, drawn)
	if err != nil {
		return err
	}
	t := tests{binary: binary, dir: dir, cpu: time.Hour}
	used, err := t.run(0)
	if err != nil {
		return fmt.Errorf("the tests fail without a mutant: %w", err)
	}
	t.cpu = slower*used + time.Second
	return judge(out, drawn, t, excused)
}

// judge runs the tests for each mutant. They come in any order, so that the first
// ones are a fair sample, too.
func judge(out io.Writer, drawn []*mutant, t tests, excused map[string]string) error {
	start, killed, pardoned := time.Now(), 0, 0
	for _, i := range rand.New(rand.NewPCG(1, 0)).Perm(len(drawn)) {
		m := drawn[i]
		used, err := t.run(i + 1)
		reason, known := excused[m.key()]
		switch {
		case err != nil && known:
			_, _ = fmt.Fprintf(out, "KILLED, though excused: %s\n", m)
			killed++
		case err != nil:
			_, _ = fmt.Fprintf(out, "killed in %s: %s\n", used.Round(10*time.Millisecond), m)
			killed++
		case known:
			_, _ = fmt.Fprintf(out, "excused: %s (%s)\n", m, reason)
			pardoned++
		default:
			_, _ = fmt.Fprintf(out, "LIVES: %s\n", m)
		}
	}
	share := float64(killed) / float64(max(len(drawn), 1))
	_, _ = fmt.Fprintf(out, "%d of %d mutants killed (%.1f %%), %d survivors excused, in %s\n",
		killed, len(drawn), 100*share, pardoned, time.Since(start).Round(time.Second))
	if share < enough {
		return fmt.Errorf("want %.0f %% killed", 100*enough)
	}
	return nil
}

// tests is a built test binary and the folder in which it runs.
type tests struct {
	binary, dir string
	cpu         time.Duration // how much processor time a run may take
}

// run returns an error if a test fails with the mutant of that number, and the
// processor time that it took. The model comes first: it is quick and finds the
// most.
func (t tests) run(number int) (used time.Duration, _ error) {
	for _, arguments := range [][]string{
		{"-test.run=^TestModel$", "-model.commands=5000"},
		{"-test.short", "-test.skip=^TestModel$"},
		{"-test.short", "-test.run=^TestModel$"},
	} {
		limits := fmt.Sprintf("ulimit -t %d; ulimit -v %d; exec \"$0\" \"$@\"", int(t.cpu.Seconds())+1, memoryKiB)
		command := append([]string{"-c", limits, t.binary, "-test.failfast"}, arguments...)
		c := exec.CommandContext(context.Background(), "sh", command...)
		c.Dir, c.Env = t.dir, append(os.Environ(), switchName+"="+strconv.Itoa(number))
		output, err := c.CombinedOutput()
		if c.ProcessState != nil {
			used += c.ProcessState.UserTime()
		}
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			return used, fmt.Errorf("run tests: %w", err)
		}
		if err != nil {
			return used, fmt.Errorf("%w\n%s", err, output[max(0, len(output)-2000):])
		}
	}
	return used, nil
}
