#!/usr/bin/env bash
# Breaks lines of a room, one at a time, and tells which of them no short test
# misses:
#
#   jepsen/mutate.sh ROOM [MUTANTS [SEED]]
#
# MUTANTS (400) are drawn from all that gremlins knows; SEED makes another draw.
# gremlins cannot draw, but it can keep to lines that differ from a commit: so
# this makes, in a copy of the tree, a commit that differs in the drawn ones.
set -euo pipefail

room=$1 mutants=${2:-400} seed=${3:-1}
root=$(cd "$(dirname "$0")/.." && pwd)
gremlins=$root/.tools/gremlins
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

export GOFLAGS='-short -vet=off' GIT_DIR=$copy/.git GIT_WORK_TREE=$copy/$room
cp -r "$root"/{go.mod,go.sum,sqs,sns,wal,raftfsm} "$copy"
cp -r "$root/$room" "$copy/whole"
cd "$copy"
git init -q
git config user.name mutate
git config user.email mutate@holdfast.internal

"$gremlins" unleash --dry-run "./$room" | awk '$1 == "RUNNABLE" { print $4 }' >runnable
shuf -n "$mutants" --random-source=<(yes "$seed") runnable | cut -d: -f1,2 | sort -u >drawn
while IFS=: read -r file line; do
	sed -i "${line}s/\$/ \/\/ drawn/" "$room/$file"
done <drawn
git add .
git commit -qm drawn
rm -r "$room"
mv whole "$room"

"$gremlins" unleash --timeout-coefficient 6 --workers 1 --diff HEAD "./$room" | grep --line-buffered -v SKIPPED
