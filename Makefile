.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

GO ?= go
ARGS ?=
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
TOOLS := $(CURDIR)/.tools
LINTER := $(TOOLS)/golangci-lint
LINTER_VERSION := v2.15.0
GREMLINS := $(TOOLS)/gremlins
GREMLINS_VERSION := v0.6.0

# Opens a recipe line: the stage's time is printed at its end, passed or not.
timed = @TIMEFORMAT='$@: %0R s'; time

## help: list the targets
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## build: compile bin/holdfast, one static binary
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/holdfast ./cmd/holdfast

## run: build and run one node on ./holdfast-data (flags in ARGS)
run: build
	exec bin/holdfast serve $(ARGS)

## test: all that CI runs: lint, unit, race, conformance, kills, fuzz
test: lint unit race conformance kills fuzz

## lint: run the linters of .golangci.yml
lint: $(LINTER)
	$(timed) $(LINTER) run ./...

## fmt: format the code
fmt: $(LINTER)
	$(LINTER) fmt ./...

## unit: every test that needs no other process
unit:
	$(timed) $(GO) test ./...

## race: the same under the race detector
race:
	$(timed) $(GO) test -race ./...

## fuzz: each fuzz target for FUZZTIME (default 10s)
FUZZTIME ?= 10s
fuzz:
	$(timed) $(GO) test -list '^Fuzz' ./... \
	| awk '/^Fuzz/ { names[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' \
	| while read -r package name; do \
		$(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "$$package"; \
	done

## bench: measure a node against its floors (text and bench.json)
bench: build
	bin/holdfast bench --floor --json bench.json

## test-clients: AWS CLI, boto3, JavaScript and Java SDKs against a node
test-clients: build
	$(timed) jepsen/clients/run.sh

## mutate: does a test fail when a line of the state machine is broken?
mutate: $(GREMLINS)
	$(GREMLINS) unleash --timeout-coefficient 50 --workers 1 ./sqs
	$(GREMLINS) unleash --timeout-coefficient 50 --workers 1 ./raftfsm

$(LINTER):
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINTER_VERSION)

$(GREMLINS):
	GOBIN=$(TOOLS) $(GO) install github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)

.PHONY: help build run test lint fmt unit race fuzz bench test-clients mutate
