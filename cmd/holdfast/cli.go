package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// Exit codes that all subcommands share. Those of serve from 3 on are
// cluster.ExitCorrupt and its neighbours.
const (
	exitNo    = 1 // the answer is no, or the work failed
	exitUsage = 2 // the command line, the environment or the config file is wrong
)

// grammar is the command line. Every flag has a twin in the environment,
// HOLDFAST_ and its name in upper case.
type grammar struct {
	Serve    serveCommand    `cmd:"" help:"Run a node."`
	Settings settingsCommand `cmd:"" help:"Read or change the settings that all nodes of a cluster share."`
	Status   statusCommand   `cmd:"" help:"Show how a node is, or several side by side."`
	Queue    queueCommand    `cmd:"" help:"Look into queues, empty them, redrive dead letters."`
	Topic    topicCommand    `cmd:"" help:"List topics and their subscriptions."`
	Cert     certCommand     `cmd:"" help:"Make the certificates by which nodes know each other."`
	WAL      walCommand      `cmd:"" name:"wal" help:"Check or print what a data folder holds."`
	Bench    benchCommand    `cmd:"" help:"Measure how fast a node is."`
	Echo     echoCommand     `cmd:"" name:"bench-echo" hidden:"" help:"The echo server that bench measures against."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// console is what a subcommand may touch of the process that it runs in.
type console struct {
	ctx    context.Context // done when the process is asked to stop
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

// exitError is an error that ends the process with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

// usageError says that flags, each good by itself, do not go together.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// run executes one command line and returns the exit code. Cancelling ctx is
// what SIGTERM is to a process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	parsed, done, err := parse(args, stdout, stderr)
	if done {
		return 0
	}
	if err == nil {
		err = parsed.Run(&console{ctx, stdin, stdout, stderr})
	}
	if err == nil {
		return 0
	}
	if text := err.Error(); text != "" {
		_, _ = fmt.Fprintln(stderr, "holdfast:", text)
	}
	return exitCode(err)
}

// parse turns a command line into a command that is ready to Run. done says
// that the line asked for help only, which is written.
func parse(args []string, stdout, stderr io.Writer) (parsed *kong.Context, done bool, err error) {
	parser, err := newParser(&grammar{}, func(int) { done = true }, stdout, stderr)
	if err != nil {
		return nil, false, err
	}
	parsed, err = parser.Parse(args)
	if err != nil && !done {
		err = &exitError{exitUsage, err}
	}
	return parsed, done, err
}

func newParser(g *grammar, exit func(int), stdout, stderr io.Writer) (*kong.Kong, error) {
	options := append(valueReaders(),
		kong.Name("holdfast"),
		kong.Description("A message broker that speaks Amazon SQS and SNS."),
		kong.DefaultEnvars(envPrefix),
		kong.Configuration(readConfigFile),
		kong.ExplicitGroups([]kong.Group{
			{Key: "cluster", Title: "Members of a cluster:"},
			{Key: "settings", Title: "Settings, which the first start of a cluster writes down (later: holdfast settings set):"},
			{Key: "test", Title: "For tests:"},
		}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
	)
	parser, err := kong.New(g, options...)
	if err != nil {
		return nil, fmt.Errorf("build the command line: %w", err)
	}
	return parser, nil
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	return exitNo
}

// version is set by the linker (see the Makefile).
var version string

// buildVersion names this build: as the Makefile says, or the module version
// that `go install` recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unversioned"
}

type versionCommand struct {
	jsonFlag
}

func (c *versionCommand) Run(out *console) error {
	if c.JSON {
		return writeJSON(out.stdout, map[string]string{"version": buildVersion()})
	}
	_, err := fmt.Fprintln(out.stdout, "holdfast", buildVersion())
	return err
}
