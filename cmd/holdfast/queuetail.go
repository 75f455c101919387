package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"holdfast.internal/httpapi/admin"
)

type queueTail struct{ queueLook }

// Run prints until it is told to stop. A stream that ends by itself is a no.
func (c *queueTail) Run(out *console) error {
	target, err := c.url(out, c.staleFlag)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(out.ctx, http.MethodGet, target+"/tail"+c.query(url.Values{}), nil)
	if err != nil {
		return fmt.Errorf("address %s: %w", target, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return stopped(out.ctx, fmt.Errorf("reach node: %w", err))
	}
	defer response.Body.Close() //nolint:errcheck // abandoned
	if response.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(response.Body, maxAdminAnswer))
		return fmt.Errorf("queue %s: %w", c.Name, refusal(response.Status, data))
	}
	return stopped(out.ctx, c.print(out, response.Body))
}

// stopped is nil once the command was told to stop.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (c *queueTail) print(out *console, stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		var step admin.Step
		if err := json.Unmarshal(lines.Bytes(), &step); err != nil {
			return fmt.Errorf("decode event: %w", err)
		}
		if err := c.printStep(out.stdout, &step); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	return errors.New("the node has ended the stream")
}

func (c *queueTail) printStep(w io.Writer, step *admin.Step) error {
	if c.JSON {
		return writeJSON(w, step)
	}
	if step.Dropped > 0 {
		if _, err := fmt.Fprintf(w, "… %d events lost: they came faster than this command reads\n", step.Dropped); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
	}
	line := fmt.Sprintf("%s  %-9s  %5s  %-36s  %s",
		timeText(step.TimeMS), step.Event, numberText(step.Sequence), orDash(step.MessageID), stepText(step))
	if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return nil
}
