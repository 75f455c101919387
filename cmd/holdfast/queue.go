package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"holdfast.internal/httpapi/admin"
	"holdfast.internal/sqs"
)

// queueTimeout is how long a change may take, and a look at move tasks: they are log
// entries, and may have to wait for a leader.
const queueTimeout = 30 * time.Second

type queueCommand struct {
	List  queueList  `cmd:"" help:"List queues, and say where a dead-letter queue is missing."`
	Show  queueShow  `cmd:"" help:"Show one queue: counts, counters, attributes, tags."`
	Peek  queuePeek  `cmd:"" help:"Show messages without receiving or counting them, oldest first."`
	Purge queuePurge `cmd:"" help:"Delete all messages of a queue."`
	Trace queueTrace `cmd:"" help:"Tell what happened to a message, from the log and the state."`
	Tail  queueTail  `cmd:"" help:"Print what happens to the messages of a queue from now on."`

	Redrive queueRedrive `cmd:"" help:"Move dead letters back to where they came from, or elsewhere."`
}

// oneQueue is embedded in commands about one queue of a running node.
type oneQueue struct {
	oneNode
	jsonFlag
	Account string `placeholder:"ID" help:"Account of the queue (the cluster's own)."`
	Name    string `arg:"" help:"Name of the queue."`
}

// url is where the admin port has the queue.
func (c *oneQueue) url(out *console, stale staleFlag) (string, error) {
	if !sqs.ValidQueueName(c.Name) {
		return "", usageError("%q cannot be the name of a queue", c.Name)
	}
	account, err := accountOr(out, c.Admin, c.Account, stale)
	if err != nil {
		return "", err
	}
	return adminURL(c.Admin) + "/queues/" + url.PathEscape(account) + "/" + url.PathEscape(c.Name), nil
}

// accountOr is the account that was given, or else the cluster's own.
func accountOr(out *console, admin, account string, stale staleFlag) (string, error) {
	if account != "" {
		return account, nil
	}
	settings, err := readSettings(out, admin, stale)
	return settings["account"], err
}

// queueLook is embedded in commands that look into one queue.
type queueLook struct {
	oneQueue
	staleFlag
}

// look asks for what is at path below the queue.
func (c *queueLook) look(out *console, path string, query url.Values, answer any) error {
	target, err := c.url(out, c.staleFlag)
	if err != nil {
		return err
	}
	if err := callAdmin(out.ctx, http.MethodGet, target+path+c.query(query), nil, lookTimeout, answer); err != nil {
		return fmt.Errorf("queue %s: %w", c.Name, err)
	}
	return nil
}

type queueList struct {
	oneNode
	jsonFlag
	staleFlag
	Account string `placeholder:"ID" help:"Queues of this account only."`
	Prefix  string `placeholder:"TEXT" help:"Queues whose names begin so only."`
}

func (c *queueList) Run(out *console) error {
	query := url.Values{"account": {c.Account}, "prefix": {c.Prefix}}
	queues := []admin.Queue{}
	if err := callAdmin(out.ctx, http.MethodGet, adminURL(c.Admin)+"/queues"+c.query(query), nil, lookTimeout, &queues); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(out.stdout, queues)
	}
	table := tabwriter.NewWriter(out.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "account\tname\tvisible\tin flight\tdelayed\toldest\tdead-letter queue")
	for _, q := range queues {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%s%s\n",
			q.Account, q.Name, q.Visible, q.InFlight, q.Delayed, ageText(q.OldestMS), deadLetterText(&q), damageText(&q))
	}
	return flush(table)
}

func flush(table *tabwriter.Writer) error {
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// ageText is an age in whole seconds.
func ageText(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return (time.Duration(ms) * time.Millisecond).Truncate(time.Second).String()
}

// deadLetterText is the name of the dead-letter queue, with a mark if there is
// no such queue.
func deadLetterText(q *admin.Queue) string {
	name := strings.TrimPrefix(q.DeadLetterQueue, q.Account+"/")
	switch {
	case name == "":
		return "-"
	case q.Dangling:
		return name + " (missing)"
	}
	return name
}

// damageText is a remark on a queue that a panic closed.
func damageText(q *admin.Queue) string {
	if q.Damaged {
		return "\tdamaged: it can only be deleted"
	}
	return ""
}

type queueShow struct{ queueLook }

func (c *queueShow) Run(out *console) error {
	var q admin.QueueDetails
	if err := c.look(out, "", url.Values{}, &q); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(out.stdout, q)
	}
	return writeQueue(out.stdout, &q)
}

func writeQueue(w io.Writer, q *admin.QueueDetails) error {
	purged := "never"
	if q.PurgedMS != 0 {
		purged = timeText(q.PurgedMS)
	}
	rows := [][2]string{
		{"queue", q.Name + damageText(&q.Queue)},
		{"account", q.Account},
		{"created", timeText(q.CreatedMS)},
		{"modified", timeText(q.ModifiedMS)},
		{"purged", purged},
		{"messages", fmt.Sprintf("%d visible, %d in flight, %d delayed", q.Visible, q.InFlight, q.Delayed)},
		{"oldest", ageText(q.OldestMS)},
		{"dead-letter queue", deadLetterText(&q.Queue)},
		{"dead-letter queue of", strings.Join(q.Sources, ", ")},
		{"sent", fmt.Sprintf("%d, %s", q.Sent, sizeText(int64(q.SentBytes)))},
		{"received", fmt.Sprintf("%d, empty receives %d", q.Received, q.EmptyReceives)},
		{"deleted", fmt.Sprint(q.Deleted)},
		{"moved to dead letters", fmt.Sprint(q.Moved)},
		{"not moved", fmt.Sprintf("%d deliveries for want of a dead-letter queue", q.Stranded)},
	}
	if q.Lost > 0 {
		rows = append(rows, [2]string{"lost", fmt.Sprintf("%d, their content is damaged on every node", q.Lost)})
	}
	for _, name := range slices.Sorted(maps.Keys(q.Attributes)) {
		rows = append(rows, [2]string{name, oneLine(q.Attributes[name])})
	}
	for _, key := range slices.Sorted(maps.Keys(q.Tags)) {
		rows = append(rows, [2]string{"tag " + oneLine(key), oneLine(q.Tags[key])})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if row[1] != "" {
			_, _ = fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
		}
	}
	return flush(table)
}

type queuePurge struct{ oneQueue }

func (c *queuePurge) Run(out *console) error {
	target, err := c.url(out, staleFlag{})
	if err != nil {
		return err
	}
	var answer map[string]uint64
	if err := callAdmin(out.ctx, http.MethodDelete, target+"/messages", nil, queueTimeout, &answer); err != nil {
		return fmt.Errorf("queue %s: %w", c.Name, err)
	}
	if c.JSON {
		return writeJSON(out.stdout, answer)
	}
	_, err = fmt.Fprintf(out.stdout, "%s is empty\n", c.Name)
	return err
}

// timeText is a time of the cluster, to the millisecond.
func timeText(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
