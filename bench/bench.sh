#!/usr/bin/env bash
# Runs bench/compare.py under a Python of its own (build/bench-venv) that has the peers from PyPI. All options go through.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../build/bench-venv

if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
  echo "bench: installing $(tr '\n' ' ' < "$here/requirements.txt")" >&2
  python3 -m venv "$venv"
  "$venv/bin/pip" -q --disable-pip-version-check install -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$venv/installed.txt"
fi
exec "$venv/bin/python" "$here/compare.py" "$@"
