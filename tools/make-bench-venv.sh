#!/usr/bin/env bash
# Makes the virtual environments of `make bench`, one a section of tests/bench/requirements.txt, and installs the Debian
# packages it measures. Idempotent: a stamp holds the section's checksum. What cannot be installed, or takes longer than five
# minutes, is no failure here: the reason goes to DIR/NAME.absent, and the results report it as absent.
#   tools/make-bench-venv.sh DIR
set -uo pipefail

dir="${1:?usage: $0 DIR}"
here=$(cd "$(dirname "$0")/.." && pwd)
requirements="$here/tests/bench/requirements.txt"
limit=300
mkdir -p "$dir"

section() { awk -v want="[$1]" '/^\[/ { on = ($0 == want); next } on && !/^#/ && NF' "$requirements"; }

absent() { # NAME REASON LOG
  printf '%s: %s\n' "$2" "$(grep -v '^ *$' "$3" | tail -n 1 | cut -c 1-300)" >"$dir/$1.absent"
  echo "bench: $1 is absent: $(cat "$dir/$1.absent")"
}

make_venv() { # NAME
  local name="$1" list="$dir/$1.txt" log="$dir/$1.log" sum
  section "$name" >"$list"
  sum=$(sha256sum "$list" | cut -d' ' -f1)
  if [ -x "$dir/$name/bin/python" ] && [ "$(cat "$dir/$name/.requirements" 2>/dev/null)" = "$sum" ]; then return; fi
  echo "bench: installing $name"
  rm -rf "${dir:?}/$name" "$dir/$name.absent"
  python3 -m venv "$dir/$name"
  if timeout "$limit" "$dir/$name/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$list" >"$log" 2>&1; then
    echo "$sum" >"$dir/$name/.requirements"
  else
    absent "$name" "pip install failed (exit $?)" "$log"
  fi
}

install_debian() { # PACKAGE
  local log="$dir/$1.log" as_root=()
  rm -f "$dir/$1.absent"
  if command -v "$1" >/dev/null; then return; fi
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
  echo "bench: installing Debian package $1"
  # Every wait has an end: for another one's lock, for the archive, and for the package's own scripts.
  local apt=(timeout --kill-after=10 "$limit" apt-get -qq -o DPkg::Lock::Timeout=60 -o Acquire::http::Timeout=30 -o Acquire::Retries=2)
  { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a "${apt[@]}" update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a \
      "${apt[@]}" install -y --no-install-recommends "$1"; } </dev/null >"$log" 2>&1 ||
    absent "$1" "apt-get failed (exit $?; 124: not done in $limit s)" "$log"
}

for name in $(sed -n 's/^\[\(.*\)\]$/\1/p' "$requirements"); do make_venv "$name"; done
for package in pgcopydb pgloader; do install_debian "$package"; done
[ -x "$dir/bench/bin/python" ] && [ ! -e "$dir/bench.absent" ]
