#!/usr/bin/env bash
# Line and branch coverage of the files that decide about guarantees and commits, from the unit and black-box suites
# of a --coverage build. Fails when one of them has an uncovered line.
set -uo pipefail
build=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
tools/test.sh "$build" || exit 1
gcovr --root . --object-directory "$build" --exclude 'tests/.*' --txt "$build/coverage.txt" --branches \
  --filter 'src/plan/guarantee.c' --filter 'src/engine/epoch.c' --filter 'src/engine/commit.c'
cat "$build/coverage.txt"
gcovr --root . --object-directory "$build" --exclude 'tests/.*' --filter 'src/.*' --txt "$build/coverage-all.txt" >/dev/null
tail -n 4 "$build/coverage-all.txt"
