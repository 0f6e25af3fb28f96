#!/usr/bin/env bash
# Runs fuzz targets (libFuzzer) one after the other, each for a bounded time.
#   tools/run-fuzz.sh SECONDS BIN…
# What a target learns is kept under build/fuzz-corpus/NAME, so that the next round goes on from there; seeds that belong
# to the project lie in tests/fuzz/corpus/NAME, a dictionary in tests/fuzz/NAME.dict. The first crash, leak or hang stops
# everything, with exit code 1 and the path of the input that made it (build/fuzz-artifacts/).
set -uo pipefail

if [ $# -lt 2 ] || ! [[ "$1" =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: $0 SECONDS BIN…" >&2
  exit 2
fi
seconds=$1
shift

cd "$(dirname "$0")/.."
artifacts=build/fuzz-artifacts
mkdir -p "$artifacts"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

for bin in "$@"; do
  name=$(basename "$bin")
  corpus=build/fuzz-corpus/$name
  mkdir -p "$corpus"
  from=("$corpus")
  [ -d "tests/fuzz/corpus/$name" ] && from+=("tests/fuzz/corpus/$name")
  options=("-max_total_time=$seconds" -timeout=20 -rss_limit_mb=2048 "-artifact_prefix=$artifacts/$name-" -print_final_stats=1)
  [ -f "tests/fuzz/$name.dict" ] && options+=("-dict=tests/fuzz/$name.dict")
  echo "fuzz   $name: ${seconds}s"
  # libFuzzer looks at the time between runs only; the outer limit is for a target that never comes back.
  code=0
  timeout -k 10 $((seconds + 60)) "$bin" "${options[@]}" "${from[@]}" >"$log" 2>&1 </dev/null || code=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  if [ "$code" -ne 0 ]; then
    tail -n 60 "$log"
    found=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    echo "FAILED $name: exit code $code; input: ${found:-none was written}"
    exit 1
  fi
  echo "ok     $name: ${runs:-?} runs, $(find "$corpus" -type f | wc -l) inputs kept"
done
