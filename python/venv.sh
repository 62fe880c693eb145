#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Python of its own (build/python-venv) with what building and testing the Python package needs (requirements.txt): installs it where
# it is missing, and prints the path of its interpreter. PYTHON names the one that it is made of (3.11 or newer; default: python3).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=${1:-$here/../build}/python-venv

if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
  "$here/../scripts/setup.sh" python >&2
  echo "python: installing $(tr '\n' ' ' < "$here/requirements.txt")" >&2
  "${PYTHON:-python3}" -m venv "$venv"
  "$venv/bin/pip" -q --disable-pip-version-check install -r "$here/requirements.txt" >&2
  cp "$here/requirements.txt" "$venv/installed.txt"
fi
echo "$venv/bin/python"
