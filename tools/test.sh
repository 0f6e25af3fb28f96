#!/usr/bin/env bash
# Runs the whole test suite against the binaries in a build folder: unit tests, then the black-box and crash suites in
# parallel. Prints one line a suite; the last line is "N passed, N failed".
#   tools/test.sh BUILD [asan]
set -uo pipefail

build=$(realpath "$1")
mode="${2:-plain}"
root=$(cd "$(dirname "$0")/.." && pwd)
venv="$root/build/venv"
cd "$root" || exit 1

total_passed=0
total_failed=0

echo "== unit"
unit_log=$(mktemp)
tools/run-unit.sh $(find "$build/unit" -name "test_*" -type f -executable | sort) >"$unit_log" 2>&1
cat "$unit_log"
read -r passed failed < <(tail -n 1 "$unit_log" | sed -E 's/^([0-9]+) passed, ([0-9]+) failed.*/\1 \2/')
total_passed=$((total_passed + passed))
total_failed=$((total_failed + failed))

echo "== black box"
report="$build/pytest.xml"
rm -f "$report"
args=(-q -p no:cacheprovider --junitxml="$report" -n "${PYTEST_WORKERS:-3}" --dist loadgroup)
[ "$mode" = asan ] && args+=(-m "not big")
OPENETL="$build/openetl" "$venv/bin/python" -m pytest "${args[@]}" ${PYTEST_ARGS:-tests}
pytest_code=$?
read -r passed failed < <("$venv/bin/python" - "$report" <<'PY'
import sys
import xml.etree.ElementTree as tree

try:
    suites = list(tree.parse(sys.argv[1]).getroot().iter("testsuite"))
except (OSError, tree.ParseError):
    print(0, 1)
    raise SystemExit
count = lambda name: sum(int(suite.get(name, 0)) for suite in suites)
bad = count("failures") + count("errors")
# A skipped test is not a passed one.
print(count("tests") - bad - count("skipped"), bad)
PY
)
[ "$pytest_code" -ne 0 ] && [ "$failed" -eq 0 ] && failed=1
total_passed=$((total_passed + passed))
total_failed=$((total_failed + failed))

echo "$total_passed passed, $total_failed failed"
[ "$total_failed" -eq 0 ] && [ "$total_passed" -gt 0 ]
