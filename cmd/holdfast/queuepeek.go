package main

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"holdfast.internal/httpapi/admin"
)

// maxShownBody is how many characters of a body a table shows.
const maxShownBody = 200

type queuePeek struct {
	queueLook
	State string `enum:"visible,inflight,delayed" default:"visible" placeholder:"visible|inflight|delayed" help:"Messages in this state (${default})."`
	Limit int    `default:"10" env:"HOLDFAST_PEEK_LIMIT" placeholder:"N" help:"At most so many, 1 to 1000 (${default})."`
	After string `placeholder:"CURSOR" help:"Go on where an earlier answer ended."`
}

// Validate is called by kong when all flags have their values.
func (c *queuePeek) Validate() error {
	if c.Limit < 1 || c.Limit > 1000 {
		return fmt.Errorf("--limit %d: want 1 to 1000", c.Limit)
	}
	return nil
}

func (c *queuePeek) Run(out *console) error {
	query := url.Values{"state": {c.State}, "limit": {strconv.Itoa(c.Limit)}, "after": {c.After}}
	var page admin.MessagePage
	if err := c.look(out, "/messages", query, &page); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(out.stdout, page)
	}
	return writePage(out.stdout, &page)
}

func writePage(w io.Writer, page *admin.MessagePage) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "no\tmessage id\tsent\treceives\tvisible from\tgroup\tbody")
	for _, m := range page.Messages {
		from := "-"
		if m.AvailableMS != 0 {
			from = timeText(m.AvailableMS)
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\t%s\n",
			m.Sequence, orDash(m.MessageID), timeText(m.SentMS), m.ReceiveCount, from, orDash(oneLine(m.GroupID)), bodyText(&m))
	}
	if err := flush(table); err != nil || page.Next == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "more: --after %s\n", page.Next)
	return err
}

func bodyText(m *admin.Message) string {
	if m.Error != "" {
		return "(" + m.Error + ")"
	}
	body := []rune(m.Body)
	if len(body) <= maxShownBody {
		return oneLine(m.Body)
	}
	return oneLine(string(body[:maxShownBody])) + "…"
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// oneLine writes what is no printable character as Go would, so that a message
// can neither break a table nor command a terminal.
func oneLine(text string) string {
	if strings.IndexFunc(text, isUnprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isUnprintable(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) }
