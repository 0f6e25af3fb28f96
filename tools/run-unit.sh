#!/usr/bin/env bash
# Runs unit-test binaries (cmocka) one after the other and adds them up.
#   tools/run-unit.sh BIN…
# A failed test is printed with its message. A binary that ends badly without naming a failed test (a crash, a sanitizer
# report, a leak found at exit, a time-out) counts as one failure, and so does one that ran no test at all.
# The last line is "N passed, N failed"; the exit code is 1 when anything failed.
set -uo pipefail

limit="${UNIT_TIMEOUT:-300}"
passed=0
failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

for bin in "$@"; do
  name=$(basename "$bin")
  code=0
  # The group's braces keep the shell's own "Aborted" line out; the test's output goes to the file.
  { CMOCKA_MESSAGE_OUTPUT=STDOUT timeout -k 5 "$limit" "$bin" >"$out" 2>&1 </dev/null; } 2>/dev/null || code=$?
  ok=$(grep -ac '^\[       OK \] ' "$out")
  skipped=$(grep -ac '^\[  SKIPPED \] .* test(s)' "$out")
  # Each group repeats its failed tests after its "N test(s) run." line; only those before it are counted.
  bad=$(awk '/^\[==========\] Running /{body = 1} /^\[==========\] .* run\.$/{body = 0}
             body && /^\[  FAILED  \] /{n++} END{print n + 0}' "$out")
  if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then
    bad=1
    if [ "$code" -eq 124 ]; then why="no end within ${limit}s"; else why="exit code $code"; fi
    echo "FAILED $name: $why, with no failed test named"
    tail -n 60 "$out" | sed 's/^/  /'
  elif [ "$bad" -gt 0 ]; then
    echo "FAILED $name: $bad of $((ok + bad))"
    grep -av -e '^\[==========\] ' -e '^\[  PASSED  \] ' "$out" | awk '
      /^\[ RUN      \] / { held = $0; next }
      /^\[       OK \] / { held = ""; next }
      { if (held != "") { print "  " held; held = "" } print "  " $0 }'
  elif [ "$ok" -eq 0 ]; then
    bad=1
    echo "FAILED $name: it ran no test"
    sed 's/^/  /' "$out" | tail -n 20
  else
    if [ "$skipped" -gt 0 ]; then echo "ok     $name: $ok (some were skipped)"; else echo "ok     $name: $ok"; fi
  fi
  passed=$((passed + ok))
  failed=$((failed + bad))
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
