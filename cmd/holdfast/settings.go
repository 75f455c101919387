package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// settingTimeout is how long a change may take: it is a log entry, and may
// have to wait for a leader.
const settingTimeout = 30 * time.Second

type settingsCommand struct {
	Get settingsGet `cmd:"" help:"Print the settings in force, or one of them."`
	Set settingsSet `cmd:"" help:"Change a setting on all nodes, for good."`
}

// oneNode is embedded in commands that talk to one running node.
type oneNode struct {
	Admin string `default:"http://127.0.0.1:4567" placeholder:"URL" help:"Admin port of a node (${default})."`
}

// staleFlag is embedded in commands that look into the state of one running node.
type staleFlag struct {
	Stale bool `help:"Answer from what this node knows, although it is not ready."`
}

// query is the end of a URL that looks into the state; it changes values.
func (f staleFlag) query(values url.Values) string {
	if f.Stale {
		values.Set("stale", "true")
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

type settingsGet struct {
	oneNode
	jsonFlag
	staleFlag
	Name string `arg:"" optional:"" help:"Print the value of this one only."`
}

func (c *settingsGet) Run(out *console) error {
	settings, err := readSettings(out, c.Admin, c.staleFlag)
	if err != nil {
		return err
	}
	if c.Name != "" {
		value, ok := settings[c.Name]
		if !ok {
			return fmt.Errorf("there is no setting %q", c.Name)
		}
		if c.JSON {
			return writeJSON(out.stdout, value)
		}
		_, err := fmt.Fprintln(out.stdout, value)
		return err
	}
	if c.JSON {
		return writeJSON(out.stdout, settings)
	}
	table := tabwriter.NewWriter(out.stdout, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", name, settings[name])
	}
	return flush(table)
}

// readSettings reads the settings in force from an admin port.
func readSettings(out *console, admin string, stale staleFlag) (settings map[string]string, err error) {
	target := adminURL(admin) + "/settings" + stale.query(url.Values{})
	err = callAdmin(out.ctx, http.MethodGet, target, nil, lookTimeout, &settings)
	return settings, err
}

type settingsSet struct {
	oneNode
	jsonFlag
	Name  string `arg:"" help:"Name of the setting, as of the flag of serve that seeds it."`
	Value string `arg:"" help:"Its new value."`
}

func (c *settingsSet) Run(out *console) error {
	var settings map[string]string
	target := adminURL(c.Admin) + "/settings/" + url.PathEscape(c.Name)
	if err := callAdmin(out.ctx, http.MethodPut, target, strings.NewReader(c.Value), settingTimeout, &settings); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(out.stdout, settings)
	}
	_, err := fmt.Fprintf(out.stdout, "%s is %s\n", c.Name, settings[c.Name])
	return err
}
