package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"holdfast.internal/httpapi/admin"
)

const statusTimeout = 5 * time.Second

type statusCommand struct {
	jsonFlag
	Admin []string `default:"http://127.0.0.1:4567" placeholder:"URL" help:"Admin ports of the nodes to show (${default})."`
}

// nodeStatus is what one admin port said, or why it said nothing.
type nodeStatus struct {
	Admin string `json:"admin"`
	// Node is the name of one that said nothing, if the others tell it.
	Node   string        `json:"node,omitempty"`
	Error  string        `json:"error,omitempty"`
	Status *admin.Status `json:"status,omitempty"`
}

// Run answers yes when every node is reachable and ready.
func (c *statusCommand) Run(out *console) error {
	nodes := make([]nodeStatus, len(c.Admin))
	ready := true
	for i, address := range c.Admin {
		nodes[i].Admin = adminURL(address)
		var status admin.Status
		if err := callAdmin(out.ctx, http.MethodGet, nodes[i].Admin+"/status", nil, statusTimeout, &status); err != nil {
			nodes[i].Error = silence(err)
			ready = false
			continue
		}
		nodes[i].Status = &status
		ready = ready && status.Ready
	}
	nameSilent(nodes)
	if err := c.write(out.stdout, nodes); err != nil {
		return err
	}
	if !ready {
		return &exitError{exitNo, errors.New("")}
	}
	return nil
}

// write gives, in JSON, the very answer of a single node, and a list for more.
func (c *statusCommand) write(w io.Writer, nodes []nodeStatus) error {
	switch {
	case !c.JSON:
		return writeStatusTable(w, nodes)
	case len(nodes) == 1 && nodes[0].Status != nil:
		return writeJSON(w, nodes[0].Status)
	default:
		return writeJSON(w, nodes)
	}
}

// silence is why a node said nothing, without its address, which stands before it.
func silence(err error) string {
	if errors.Is(err, errSilent) {
		return errSilent.Error()
	}
	if attempt, ok := errors.AsType[*url.Error](err); ok {
		err = attempt.Err
	}
	return err.Error()
}

// nameSilent names the nodes that said nothing by what the others know of their members:
// the only one of them whose peer port is on the same host, or the only one at all.
func nameSilent(nodes []nodeStatus) {
	silent := map[string]string{} // name: host of its peer port
	for _, n := range nodes {
		if n.Status == nil {
			continue
		}
		for _, m := range n.Status.Members {
			silent[m.Name], _, _ = net.SplitHostPort(m.Peer)
		}
	}
	for _, n := range nodes {
		if n.Status != nil {
			delete(silent, n.Status.Node)
		}
	}
	for i := range nodes {
		if nodes[i].Status == nil {
			nodes[i].Node = silentNode(nodes[i].Admin, silent)
		}
	}
}

// silentNode is which of the members that said nothing has the given admin port; empty
// if that cannot be told.
func silentNode(adminURL string, silent map[string]string) string {
	host := ""
	if u, err := url.Parse(adminURL); err == nil {
		host = u.Hostname()
	}
	var all, onHost []string
	for name, peerHost := range silent {
		all = append(all, name)
		if peerHost == host {
			onHost = append(onHost, name)
		}
	}
	switch {
	case len(onHost) == 1:
		return onHost[0]
	case len(all) == 1:
		return all[0]
	}
	return ""
}

// heading is the name of a node, or else the place where it was asked for.
func (n nodeStatus) heading() string {
	if n.Status != nil {
		return n.Status.Node
	}
	_, place, _ := strings.Cut(n.Admin, "://")
	return cmp.Or(n.Node, place)
}

// statusRows are the lines of the table: one fact, one column for each node.
var statusRows = []struct {
	name string
	of   func(s *admin.Status) string
}{
	{"version", func(s *admin.Status) string { return s.Version }},
	{"cluster", func(s *admin.Status) string { return cmp.Or(s.ClusterID, "none yet") }},
	{"up for", func(s *admin.Status) string {
		return (time.Duration(s.UptimeMS) * time.Millisecond).Round(time.Second).String()
	}},
	{"ready", func(s *admin.Status) string {
		if s.Ready {
			return "yes"
		}
		return "no"
	}},
	{"role", func(s *admin.Status) string { return s.Role }},
	{"leader", func(s *admin.Status) string { return cmp.Or(s.Leader, "none known") }},
	{"members", func(s *admin.Status) string { return membersText(s.Members) }},
	{"term", func(s *admin.Status) string { return fmt.Sprint(s.Term) }},
	{"applied", ofGroup(func(g *admin.Group) string { return fmt.Sprint(g.Applied) })},
	{"committed", ofGroup(func(g *admin.Group) string { return fmt.Sprint(g.Commit) })},
	{"snapshot at", ofGroup(func(g *admin.Group) string { return fmt.Sprint(g.Snapshot) })},
	{"log", ofGroup(func(g *admin.Group) string {
		if g.First == 0 {
			return "empty"
		}
		return fmt.Sprintf("%s, entries %d to %d", sizeText(g.LogBytes), g.First, g.Last)
	})},
	{"parked polls", ofGroup(func(g *admin.Group) string { return fmt.Sprint(g.ParkedPolls) })},
	{"clock", func(s *admin.Status) string { return fmt.Sprintf("%+d ms to the cluster's", s.Time.WallOffsetMS) }},
	{"queues", func(s *admin.Status) string { return fmt.Sprint(s.Totals.Queues) }},
	{"messages", func(s *admin.Status) string {
		return fmt.Sprintf("%d visible, %d in flight, %d delayed", s.Totals.Visible, s.Totals.InFlight, s.Totals.Delayed)
	}},
	{"topics", func(s *admin.Status) string {
		return fmt.Sprintf("%d, with %d subscriptions", s.Totals.Topics, s.Totals.Subscriptions)
	}},
	{"damaged", func(s *admin.Status) string {
		return fmt.Sprintf("%d queues, %d topics", s.Totals.Damaged, s.Totals.DamagedTopics)
	}},
	{"lost messages", func(s *admin.Status) string { return fmt.Sprint(s.Totals.Lost) }},
	{"disk", func(s *admin.Status) string {
		return fmt.Sprintf("%s, %s free, reserve %s", s.Disk.State, sizeText(s.Disk.FreeBytes), sizeText(s.Disk.ReserveBytes))
	}},
	{"fsync", func(s *admin.Status) string {
		if s.Disk.FsyncP99US == 0 {
			return "none yet"
		}
		return fmt.Sprintf("p50 %s, p99 %s", boundText(s.Disk.FsyncP50US), boundText(s.Disk.FsyncP99US))
	}},
	{"memory", func(s *admin.Status) string {
		return fmt.Sprintf("%s, live %s, limit %s",
			sizeText(s.Memory.RSSBytes), sizeText(s.Memory.HeapBytes), sizeText(s.Memory.LimitBytes))
	}},
	{"sends", func(s *admin.Status) string { return sendsText(s.SendsHeld) }},
	{"certificates", func(s *admin.Status) string {
		var words []string
		for _, c := range s.Certificates {
			words = append(words, fmt.Sprintf("%s until %s", c.Name, c.NotAfter.Format(time.DateOnly)))
		}
		return strings.Join(words, ", ")
	}},
}

// holdTexts are what the reasons of sends_held mean.
var holdTexts = map[string]string{
	"disk":   "disk below the reserve",
	"memory": "live memory above the limit",
	"bodies": "too much that is in no snapshot yet",
}

// sendsText tells whether sends are held back.
func sendsText(held []string) string {
	if len(held) == 0 {
		return "taken"
	}
	return "held back: " + strings.Join(held, ", ")
}

// holdText says what it means that a node holds back sends.
func holdText(s *admin.Status) string {
	words := make([]string, len(s.SendsHeld))
	for i, reason := range s.SendsHeld {
		words[i] = cmp.Or(holdTexts[reason], reason)
	}
	return fmt.Sprintf("%s holds back sends, and takes receives and deletes: %s", s.Node, strings.Join(words, ", "))
}

// boundText is the upper bound of a duration of so many microseconds.
func boundText(us int64) string {
	if us < 1000 {
		return fmt.Sprintf("≤ %d us", us)
	}
	return fmt.Sprintf("≤ %g ms", float64(us)/1000)
}

// membersText tells which members the node sees, in one cell, and how old its
// knowledge is.
func membersText(members []admin.Member) string {
	var words []string
	for _, m := range members {
		age := time.Duration(m.LastContactMS) * time.Millisecond
		switch {
		case !m.Up && age == 0:
			words = append(words, m.Name+" down")
		case !m.Up:
			words = append(words, fmt.Sprintf("%s down for %v", m.Name, age.Round(time.Second)))
		case m.LagEntries > 0:
			words = append(words, fmt.Sprintf("%s %d entries behind %v ago", m.Name, m.LagEntries, age))
		default:
			words = append(words, m.Name)
		}
	}
	return strings.Join(words, ", ")
}

func ofGroup(f func(*admin.Group) string) func(*admin.Status) string {
	return func(s *admin.Status) string {
		if len(s.Groups) == 0 {
			return ""
		}
		return f(&s.Groups[0])
	}
}

func writeStatusTable(w io.Writer, nodes []nodeStatus) error {
	if slices.ContainsFunc(nodes, func(n nodeStatus) bool { return n.Status != nil }) {
		if err := writeStatusRows(w, nodes); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		switch {
		case node.Error != "":
			_, _ = fmt.Fprintf(w, "%s does not answer at %s: %s\n", cmp.Or(node.Node, "a node"), node.Admin, node.Error)
		case !node.Status.Ready:
			_, _ = fmt.Fprintf(w, "%s is not ready: %s\n", node.Status.Node, strings.Join(node.Status.Reasons, ", "))
		}
	}
	for _, node := range nodes {
		if node.Status != nil && len(node.Status.SendsHeld) > 0 {
			_, _ = fmt.Fprintln(w, holdText(node.Status))
		}
	}
	for _, line := range silences(nodes) {
		_, _ = fmt.Fprintln(w, line)
	}
	return nil
}

// silences tells which members do not answer others, and why: a line for all who say
// the same of one.
func silences(nodes []nodeStatus) (lines []string) {
	type silence struct{ of, reason string }
	told := map[silence][]string{} // by whom
	var all []silence
	for _, node := range nodes {
		if node.Status == nil {
			continue
		}
		for _, m := range node.Status.Members {
			s := silence{m.Name, m.Reason}
			if s.reason == "" {
				continue
			}
			if told[s] == nil {
				all = append(all, s)
			}
			told[s] = append(told[s], node.Status.Node)
		}
	}
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("%s does not answer %s: %s", s.of, strings.Join(told[s], ", "), s.reason))
	}
	return lines
}

func writeStatusRows(w io.Writer, nodes []nodeStatus) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	headings := []string{"node"}
	for _, node := range nodes {
		headings = append(headings, node.heading())
	}
	_, _ = fmt.Fprintln(table, strings.Join(headings, "\t"))
	for _, row := range statusRows {
		cells, blank := []string{row.name}, true
		for _, node := range nodes {
			if node.Status == nil {
				cells = append(cells, "-")
				continue
			}
			cell := row.of(node.Status)
			cells, blank = append(cells, cell), blank && cell == ""
		}
		if !blank {
			_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
		}
	}
	return flush(table)
}

// sizeText is n bytes in the largest binary unit that it reaches.
func sizeText(n int64) string {
	for i := 3; i >= 0; i-- {
		if unit := byteUnits[i]; n >= int64(unit.size) {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.size), unit.suffix)
		}
	}
	return fmt.Sprintf("%d B", n)
}
