#!/usr/bin/env bash
# Puts libduckdb.so and duckdb.h under build/deps, pinned by checksum. The library and the header come from two npm
# packages of the same release (1.4.4).
set -euo pipefail

deps="${1:-build/deps}"
so_sum=1ef33048e12235115ac0d277a0aaccbb560e33248144f488b5ac005cd9ba81b5
h_sum=cbe6a827284375c5a646b8f27dbd3a00808ce8738b5bbb49c190cb1e08540281

matches() { [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$2" ]; }

if matches "$deps/lib/libduckdb.so" "$so_sum" && matches "$deps/include/duckdb.h" "$h_sum"; then exit 0; fi

echo "fetching libduckdb 1.4.4"
mkdir -p "$deps/lib" "$deps/include"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent @duckdb/node-bindings-linux-x64@1.4.4-r.1 duckdb@1.4.4 >/dev/null)
tar -xf "$work"/duckdb-node-bindings-linux-x64-1.4.4-r.1.tgz -C "$work" package/libduckdb.so
tar -xf "$work"/duckdb-1.4.4.tgz -C "$work" package/src/duckdb/src/include/duckdb.h
matches "$work/package/libduckdb.so" "$so_sum" || { echo "libduckdb.so: checksum differs from the pinned one" >&2; exit 1; }
matches "$work/package/src/duckdb/src/include/duckdb.h" "$h_sum" || { echo "duckdb.h: checksum differs from the pinned one" >&2; exit 1; }
install -m 755 "$work/package/libduckdb.so" "$deps/lib/libduckdb.so"
install -m 644 "$work/package/src/duckdb/src/include/duckdb.h" "$deps/include/duckdb.h"
