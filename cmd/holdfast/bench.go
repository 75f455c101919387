package main

import (
	"fmt"
	"time"

	"holdfast.internal/jepsen/bench"
)

type benchCommand struct {
	Endpoint    []string      `placeholder:"URL" help:"API ports to load, one of each node. Without any, a node is started for the purpose."`
	Protocol    string        `default:"json" enum:"json,query" placeholder:"json|query" help:"Protocol to speak (${default})."`
	Client      string        `default:"standard" enum:"standard,raw" placeholder:"standard|raw" help:"What makes the load: Go's net/http, or a client that writes prepared bytes (${default})."`
	Connections int           `short:"c" default:"64" placeholder:"N" help:"Connections at a time (${default})."`
	Duration    time.Duration `default:"5s" placeholder:"D" help:"Of one measurement (${default})."`
	Body        int           `default:"1024" placeholder:"BYTES" help:"Size of a message body (${default})."`
	Batch       int           `default:"1" placeholder:"N" help:"Messages of a send (${default})."`
	Queues      int           `default:"1" placeholder:"N" help:"Queues to use (${default})."`
	Groups      int           `default:"0" placeholder:"N" help:"Message groups; 0 for standard queues (${default})."`
	Phases      []string      `placeholder:"NAME" help:"send, batch, drain, cycle, trip, wake (all of these); with a topic to which all queues are subscribed: publish, each copy counted; deliver, what was published is received; with --backlog: all, half, expiring."`
	Backlog     int           `placeholder:"N" help:"Measure how N messages are received after a restart of the node, instead of phases."`
	Floor       bool          `help:"Measure an echo server by turns, and the ratio to it."`
	JSON        string        `name:"json" env:"HOLDFAST_BENCH_JSON" placeholder:"FILE" help:"Write the report into a file as well."`
}

func (c *benchCommand) options() bench.Options {
	phases, backlogs := c.Phases, []string(nil)
	if c.Backlog > 0 {
		phases, backlogs = nil, c.Phases
	}
	return bench.Options{
		Endpoints:   c.Endpoint,
		Protocol:    c.Protocol,
		Client:      c.Client,
		Connections: c.Connections,
		Duration:    c.Duration,
		Body:        c.Body,
		Batch:       c.Batch,
		Queues:      c.Queues,
		Groups:      c.Groups,
		Phases:      phases,
		Backlogs:    backlogs,
		Floor:       c.Floor,
		JSON:        c.JSON,
		Version:     buildVersion(),
	}
}

// Validate is called by kong when all flags have their values. A zero would
// stand for a default.
func (c *benchCommand) Validate() error {
	for _, n := range []struct {
		flag  string
		value int64
	}{
		{"connections", int64(c.Connections)},
		{"duration", int64(c.Duration)},
		{"body", int64(c.Body)},
		{"batch", int64(c.Batch)},
		{"queues", int64(c.Queues)},
	} {
		if n.value == 0 {
			return fmt.Errorf("--%s 0: want more than 0", n.flag)
		}
	}
	return c.options().Validate()
}

// Run prints the table while it grows.
func (c *benchCommand) Run(out *console) error {
	if c.Backlog > 0 {
		_, err := bench.Backlog(out.ctx, c.options(), c.Backlog, out.stdout)
		return err
	}
	_, err := bench.Run(out.ctx, c.options(), out.stdout)
	return err
}

// echoCommand is what bench measures against, in a process of its own.
type echoCommand struct{}

func (echoCommand) Run(out *console) error { return bench.Echo(out.ctx, out.stdout) }
