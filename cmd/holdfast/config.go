package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// configFile resolves flags from a file. Its keys are the names of flags; a
// list is given to flags that may be repeated.
type configFile map[string]string

// readConfigFile reads YAML, of which JSON is a part. Values keep the text that
// they have in the file, so that an account of leading zeros stays one.
func readConfigFile(r io.Reader) (kong.Resolver, error) {
	var nodes map[string]yaml.Node
	if err := yaml.NewDecoder(r).Decode(&nodes); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read config file: %w", err)
	}
	file := configFile{}
	for name, node := range nodes {
		text, err := nodeText(&node)
		if err != nil {
			return nil, fmt.Errorf("read config file: %s: %w", name, err)
		}
		file[name] = text
	}
	return file, nil
}

func nodeText(node *yaml.Node) (string, error) {
	switch node.Kind {
	case yaml.ScalarNode:
		return node.Value, nil
	case yaml.SequenceNode:
		var items []string
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return "", fmt.Errorf("line %d: a list holds plain values only", item.Line)
			}
			items = append(items, item.Value)
		}
		return strings.Join(items, ","), nil
	default:
		return "", fmt.Errorf("line %d: neither a value nor a list of values", node.Line)
	}
}

// Validate implements kong.Resolver: a key that is no flag of serve is a
// mistake, not something to pass over.
func (f configFile) Validate(app *kong.Application) error {
	known := map[string]bool{}
	for _, command := range app.Leaves(false) {
		if command.Name != "serve" {
			continue
		}
		for _, flag := range command.Flags {
			known[flag.Name] = flag.Name != "config"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !known[name] {
			return fmt.Errorf("config file: %q is not the name of a flag of serve", name)
		}
	}
	return nil
}

// Resolve implements kong.Resolver. kong asks only for flags that are not on
// the command line, but would let a file override the environment.
func (f configFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	if text, ok := f[flag.Name]; ok {
		return text, nil
	}
	return nil, nil
}
