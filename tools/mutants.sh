#!/usr/bin/env bash
# Takes each safeguard out in turn and sees that the tests named for it fail: a test that cannot fail proves nothing.
#   tools/mutants.sh [NAME…]          all of tests/mutants/*.patch, or those named
# A patch begins with "Mechanism: what it takes out" and one line "Fails: TEST" for each test that must fail: a pytest id, or
# unit/test_NAME for a unit-test binary. It works on a copy of this tree in build/mutants. First the named tests must pass
# there as they are; then each patch is applied, built, tested and taken out again. A mutant that survives, and a patch that
# no longer applies or builds, are reported, and the exit code is 1.
set -uo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
tree="$root/build/mutants"
log="$root/build/mutants.log"
limit="${MUTANT_TIMEOUT:-300}"

make_tree() {
  rm -rf "$tree" && mkdir -p "$tree/build" && cd "$root" || exit 1
  git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done |
    tar --null -T - -cf - | tar -xf - -C "$tree"
  for name in obj unit; do [ -d "build/$name" ] && cp -a "build/$name" "$tree/build/"; done
  ln -s "$root/build/deps" "$root/build/venv" "$tree/build/"
  cd "$tree" && git init -q . # git apply wants a tree of its own here
}

# Makes the binary and the unit tests that are named, whatever the mutant left unused.
build() {
  local targets=(build/openetl) test
  for test in "$@"; do [[ $test == unit/* ]] && targets+=("build/$test"); done
  make -s -j"$(nproc)" WERROR= "${targets[@]}" >"$log" 2>&1
}

# 0: it passed; 1: it failed; anything else: it could not be run.
run_test() {
  if [[ $1 == unit/* ]]; then
    timeout -k 5 "$limit" "build/$1" >"$log" 2>&1 </dev/null || return 1
  else
    OPENETL="$tree/build/openetl" timeout -k 5 "$limit" build/venv/bin/python -m pytest -q -x "$1" >"$log" 2>&1 </dev/null
  fi
}

tests_of() { sed -n 's/^Fails: //p' "$@" | sort -u; }

complain() {
  echo "FAILED $1"
  tail -n "${3:-20}" "$log" | sed 's/^/  /'
  bad=$((bad + 1))
}

unmutated() {
  local tests test black_box=()
  mapfile -t tests < <(tests_of "$@")
  build "${tests[@]}" || { complain "the tree does not build"; return; }
  for test in "${tests[@]}"; do
    if [[ $test != unit/* ]]; then
      black_box+=("$test")
    elif ! run_test "$test"; then
      complain "$test does not pass with nothing taken out"
    fi
  done
  [ "${#black_box[@]}" -eq 0 ] && return
  OPENETL="$tree/build/openetl" build/venv/bin/python -m pytest -q -n "${PYTEST_WORKERS:-3}" "${black_box[@]}" >"$log" 2>&1 ||
    complain "these do not pass with nothing taken out"
}

mutate() {
  local name tests test code survived=0
  name=$(basename "$1" .patch)
  mapfile -t tests < <(tests_of "$1")
  if [ "${#tests[@]}" -eq 0 ] || ! git apply "$1" >"$log" 2>&1; then
    complain "$name: names no test, or does not apply"
    return
  fi
  if build "${tests[@]}"; then
    for test in "${tests[@]}"; do
      run_test "$test"
      code=$?
      [ "$code" -eq 1 ] && continue
      survived=1
      complain "$name: $test did not fail (exit $code)" "" 5
    done
    [ "$survived" -eq 1 ] || { echo "ok     $name: $(sed -n 's/^Mechanism: //p' "$1")"; killed=$((killed + 1)); }
  else
    complain "$name: does not build"
  fi
  git apply -R "$1" || { echo "mutants: $name cannot be taken out again"; exit 1; }
}

patches=()
if [ $# -eq 0 ]; then patches=("$root"/tests/mutants/*.patch); fi
for name in "$@"; do patches+=("$root/tests/mutants/$name.patch"); done
for patch in "${patches[@]}"; do [ -f "$patch" ] || { echo "mutants: no $patch"; exit 2; }; done

killed=0
bad=0
make_tree
unmutated "${patches[@]}"
for patch in "${patches[@]}"; do mutate "$patch"; done
echo "$killed of ${#patches[@]} mutants killed, $bad complaints"
[ "$bad" -eq 0 ]
