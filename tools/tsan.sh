#!/usr/bin/env bash
# Runs what puts the most threads to work (reads in parts, loads into DuckDB, the engine's unit tests) under ThreadSanitizer.
# A run that is killed says nothing to its test, so reports go to files; one of them is a failure.
#   tools/tsan.sh BUILD
set -uo pipefail

build=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
# DuckDB holds more locks at once than the detector of deadlocks can count.
rm -f "$build"/race.*
export TSAN_OPTIONS="log_path=$build/race suppressions=$root/tests/support/tsan.supp history_size=4 detect_deadlocks=0"
failed=0

tools/run-unit.sh "$build/unit/test_engine" || failed=1
OPENETL="$build/openetl" build/venv/bin/python -m pytest -q -p no:cacheprovider -n "${PYTEST_WORKERS:-2}" \
  tests/crash/test_parallel.py tests/connectors/test_write_modes.py -k "duckdb and (after_part or after_stage or write_modes) \
  and not wide_table or one_snapshot or lost_reader or exclusive_lock or seq_is_unique" || failed=1

reports=$(find "$build" -maxdepth 1 -name 'race.*' | wc -l)
[ "$reports" -gt 0 ] && grep -h '^SUMMARY' "$build"/race.* | sort | uniq -c
echo "$reports runs with a race reported in $build/race.*"
[ "$failed" -eq 0 ] && [ "$reports" -eq 0 ]
