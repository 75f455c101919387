package main

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// envPrefix begins the name of every flag's twin in the environment.
const envPrefix = "HOLDFAST"

// tellUnknown warns of each variable in the environment that looks like the twin of a
// flag, of whatever command, and is none: it was probably misspelt. Its value may be a
// secret.
func tellUnknown(app *kong.Application, log *slog.Logger) {
	known := map[string]bool{}
	for _, command := range app.Leaves(false) {
		for _, flag := range command.Flags {
			for _, name := range flag.Envs {
				known[name] = true
			}
		}
	}
	environment := os.Environ()
	slices.Sort(environment)
	for _, variable := range environment {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, envPrefix+"_") && !known[name] {
			log.Warn("environment variable ignored: no flag has that name", "variable", name)
		}
	}
}
