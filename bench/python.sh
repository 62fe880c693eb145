#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Python of its own (build/bench-venv) with what comes from PyPI for benchmarks and comparisons (requirements.txt): installs it
# where it is missing, and prints the path of its interpreter.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../build/bench-venv

if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
  "$here/../scripts/setup.sh" bench >&2
  echo "bench: installing $(tr '\n' ' ' < "$here/requirements.txt")" >&2
  python3 -m venv "$venv"
  "$venv/bin/pip" -q --disable-pip-version-check install -r "$here/requirements.txt" >&2
  cp "$here/requirements.txt" "$venv/installed.txt"
fi
echo "$venv/bin/python"
