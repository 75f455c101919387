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

# Opens a recipe line: the stage's time is printed at its end, passed or not.
timed = @TIMEFORMAT='$@: %0R s'; time

# Fetches by the given command, and tries again for a minute when a registry does not answer.
fetch = for pause in 2 10 20 30; do $(1) && exit; sleep $$pause; done; $(1)

## help: list the targets
help:
	@awk '/^## / { i = index($$0, ":"); printf "%-13s %s\n", substr($$0, 4, i - 4), substr($$0, i + 2) }' $(MAKEFILE_LIST)

## build: compile bin/holdfast, one static binary
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/holdfast ./cmd/holdfast

## run: build and run one node on ./holdfast-data (flags in ARGS)
run: build
	exec bin/holdfast serve $(ARGS)

## cluster: three nodes on ./holdfast-cluster behind a balancer; Ctrl-C ends all (flags in ARGS)
cluster: build
	$(GO) build -o bin/holdfast-trial ./jepsen/trial
	exec bin/holdfast-trial $(ARGS)

## test: all that CI runs: lint, unit, race, conformance, kills, cluster, fuzz
test: modules lint unit race conformance kills cluster-tests fuzz

# What the other steps would fetch in passing.
modules:
	@$(call fetch,$(GO) list -deps -test ./... > /dev/null)

## lint: run the linters of .golangci.yml
lint: $(LINTER)
	$(timed) $(LINTER) run ./...

## fmt: format the code
fmt: $(LINTER)
	$(LINTER) fmt ./...

# The packages whose tests run in this process, without some; the others start brokers.
packages = $$($(GO) list ./... | grep -v -e /jepsen$$ -e /jepsen/conformance$$ $(1))

# How long the tests of one package may take: on a slow disk those of kills need 18 minutes.
TIMEOUT = 30m

## unit: the tests of every room
unit:
	$(timed) $(GO) test -timeout $(TIMEOUT) $(call packages)

## race: the same, and a few kills, under the race detector (not the checkers: one goroutine, for a minute)
race:
	$(timed) { $(GO) test -race -timeout $(TIMEOUT) $(call packages,-e /jepsen/checker$$) && $(GO) test -race -timeout $(TIMEOUT) -run '^Test(Kill|ClusterKill)' ./jepsen; }

## conformance: what AWS answers, in both protocols
conformance:
	$(timed) $(GO) test -count=1 -timeout $(TIMEOUT) ./jepsen/conformance

## kills: kill -9 under load, stops, damaged logs, clients that leave
kills:
	$(timed) $(GO) test -count=1 -timeout $(TIMEOUT) -skip '$(three)' ./jepsen

# The tests of three nodes.
three := ^(TestCluster|TestThreeNodes|TestRollingRestart|TestStopOutlastsAPause|TestWipedNodes)

## cluster-tests: three nodes: kills, cuts, disks, clocks, polls, snapshots
cluster-tests:
	$(timed) $(GO) test -count=1 -timeout $(TIMEOUT) -run '$(three)' ./jepsen

## test-cluster: the long form of the same, about an hour
test-cluster: export HOLDFAST_LONG := 1
test-cluster:
	$(timed) $(GO) test -count=1 -v -timeout 3h -run '$(three)' ./jepsen

## fuzz: each fuzz target for FUZZTIME (default 10s)
FUZZTIME = 10s
# An interrupt ends a target, not -fuzztime: until go1.27 the end of that time
# fails a healthy target now and then (golang/go#75804).
fuzztime := timeout --foreground --preserve-status --signal INT
fuzz:
	$(timed) $(GO) test -list '^Fuzz' ./... \
	| awk '/^Fuzz/ { names[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' \
	| while read -r package name; do \
		echo "$$name in $$package"; \
		$(GO) test -run '^$$' -fuzz "^$$name$$" -exec '$(fuzztime) $(FUZZTIME)' -fuzzminimizetime 10x "$$package"; \
	done

## bench: measure a node against its floors (text and bench.json)
bench: build
	bin/holdfast bench --floor --json bench.json

## bench-backlog: BACKLOG messages (default 10 million), received after a restart
BACKLOG ?= 10000000
bench-backlog: build
	bin/holdfast bench --backlog $(BACKLOG) --json bench-backlog.json

## test-long: the long forms: slow cases, 100 kills, 10 power losses, 10 minutes a fuzz target
test-long: export HOLDFAST_LONG := 1
test-long: FUZZTIME = 10m
test-long: TIMEOUT = 1h
test-long: unit conformance kills fuzz

## test-clients: AWS CLI, boto3, JavaScript and Java SDKs against a node
test-clients: build
	$(timed) jepsen/clients/run.sh

## mutate: does a short test fail when a line of ROOM (default sqs) is broken? MUTANTS (default 400) are drawn
ROOM ?= sqs
MUTANTS ?= 400
mutate:
	$(timed) $(GO) run ./jepsen/mutate -mutants $(MUTANTS) ./$(ROOM)

$(LINTER):
	@$(call fetch,GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINTER_VERSION))

.PHONY: help build run cluster cluster-tests test modules test-cluster test-long test-clients bench bench-backlog lint fmt unit race conformance kills fuzz mutate
