package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type serveCommand struct {
	jsonFlag
	serveFlags
}

// Run serves until the process is told to stop, and then until all that was
// begun is answered.
func (c *serveCommand) Run(out *console, parsed *kong.Context) error {
	if c.PrintConfig {
		return writeJSON(out.stdout, flagTexts(parsed))
	}
	logger, err := newLogger(out.stderr, c.LogFormat, c.LogLevel)
	if err != nil {
		return err
	}
	tellUnknown(parsed.Model, logger)
	if err := limitHeap(c.Memory); err != nil {
		return err
	}
	go limitGarbage(out.ctx)
	b, err := startBroker(out.ctx, &c.serveFlags, logger)
	if errors.Is(err, context.Canceled) {
		return nil // told to stop before it had begun
	}
	if err != nil {
		return err
	}
	if err := c.announce(out.stdout, b); err != nil {
		logger.Warn("nobody reads where this node listens", "err", err)
	}
	return b.wait(out.ctx)
}

// flagTexts gives every flag that has a value, as a config file would.
func flagTexts(parsed *kong.Context) map[string]any {
	texts := map[string]any{}
	for _, flag := range parsed.Selected().Flags {
		switch flag.Name {
		case "help", "json", "config", "print-config":
			continue
		}
		text := fmt.Sprint(flag.Target.Interface())
		switch {
		case flag.IsSlice() && flag.Target.Len() > 0:
			texts[flag.Name] = strings.Fields(strings.Trim(text, "[]"))
		case !flag.IsSlice() && text != "":
			texts[flag.Name] = text
		}
	}
	return texts
}

// announce says where the node listens and what to type next.
func (c *serveCommand) announce(w io.Writer, b *broker) error {
	if c.JSON {
		where := map[string]string{"node": c.Node, "api": b.apiURL(), "admin": b.adminURL(), "data": c.Data}
		if b.peerPort != nil {
			where["peer"] = b.peerPort.Addr().String()
		}
		return writeJSON(w, where)
	}
	peers := ""
	if b.peerPort != nil {
		peers = fmt.Sprintf("peer   %s, member of %s\n", b.peerPort.Addr(), strings.Join(c.Cluster, ","))
	}
	region := c.Region // a member that knows no other one yet says what it was told
	if settings := b.node.Settings(); settings.ClusterID != "" {
		region = settings.Region
	}
	_, err := fmt.Fprintf(w, `holdfast %s, node %s, data in %s
api    %s
admin  %s
%stry    AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any aws --endpoint-url %s --region %s sqs create-queue --queue-name hello
`, buildVersion(), c.Node, c.Data, b.apiURL(), b.adminURL(), peers, b.apiURL(), region)
	return err
}
