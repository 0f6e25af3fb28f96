#!/usr/bin/env bash
# Makes the virtual environment of the black-box tests. Idempotent: the stamp holds the checksum of the requirements.
#   tools/make-venv.sh DIR
set -euo pipefail

dir="${1:?usage: $0 DIR}"
here=$(cd "$(dirname "$0")/.." && pwd)
requirements="$here/tests/requirements.txt"
sum=$(sha256sum "$requirements" | cut -d' ' -f1)

if [ -x "$dir/bin/python" ] && [ "$(cat "$dir/.requirements" 2>/dev/null)" = "$sum" ]; then exit 0; fi

echo "making the test environment in $dir"
rm -rf "$dir"
mkdir -p "$(dirname "$dir")"
python3 -m venv "$dir"
"$dir/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$requirements"
echo "$sum" >"$dir/.requirements"
