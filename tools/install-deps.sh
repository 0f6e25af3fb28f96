#!/usr/bin/env bash
# Installs what openetl needs from Debian's packages. Idempotent; says what it installs; needs root (or sudo) only when
# something is missing.
#   tools/install-deps.sh build   compilers and libraries to build the binary
#   tools/install-deps.sh demo    build + what the demo prints with
#   tools/install-deps.sh test    demo + servers, sanitizers and fuzzers the tests use
set -euo pipefail

build=(gcc make pkg-config ca-certificates npm libpq-dev libsqlite3-dev libyaml-dev libjansson-dev libxxhash-dev libcurl4-openssl-dev)
demo=(sqlite3)
test=(postgresql-15 postgresql-client-15 python3-venv clang clang-format libclang-rt-14-dev libcmocka-dev gcovr)

case "${1:-build}" in
  build) want=("${build[@]}") ;;
  demo)  want=("${build[@]}" "${demo[@]}") ;;
  test)  want=("${build[@]}" "${demo[@]}" "${test[@]}") ;;
  *) echo "usage: $0 build|demo|test" >&2; exit 2 ;;
esac

missing=()
for package in "${want[@]}"; do
  if [ "$package" = npm ] && command -v npm >/dev/null; then continue; fi
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
echo "installing Debian packages: ${missing[*]}"
# A policy file that answers 101 keeps a package's own service from starting: tests run private servers.
policy=/usr/sbin/policy-rc.d
made_policy=no
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
  made_policy=yes
fi
trap 'if [ "$made_policy" = yes ]; then "${as_root[@]}" rm -f "$policy"; fi' EXIT
log=$(mktemp)
if ! { "${as_root[@]}" apt-get update -qq &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "could not install: ${missing[*]}" >&2
  exit 1
fi
rm -f "$log"
