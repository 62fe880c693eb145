#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a wheel of what is built in BUILD (`make python`), with LLVM in the extension and the other libraries beside it: build/wheel. It is
# for every Linux with the glibc that it was built with, and for the Python of build/python-venv, or the one that PYTHON names; from 3.12
# on also for later ones (pyproject.toml, wheel.py-api).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
usual=$PWD/$build/python-venv/bin/python

version() { "$1" -c 'import sys; print(*sys.version_info[:2], sep=".")'; }
if [ -n "${PYTHON:-}" ] && [ "$(version "$PYTHON")" != "$(version "$usual")" ]; then
  venv=$build/wheel-venv
  if [ -x "$venv/bin/python" ] && [ "$(version "$venv/bin/python")" != "$(version "$PYTHON")" ]; then rm -rf "$venv"; fi
  python=$PWD/$(python/venv.sh "$build" wheel)
else
  python=$usual
  "$python" -m pip -q --disable-pip-version-check install -r python/requirements-wheel.txt
fi

# The same folder and flags, so that only the extension is compiled for another Python, and linked anew. Afterwards it is the usual one again.
restore() {
  cmake -B "$build" -U 'SKBUILD*' -U 'Python_*' -U '_Python_*' -U 'NB_*' -D TENON_PYTHON_STATIC=OFF -D Python_EXECUTABLE="$usual" > /dev/null
  rm -f "$build"/python/tenon/_core.abi3.so
}
trap restore EXIT
rm -rf "$build/wheel/raw"
"$python" -m pip -q --disable-pip-version-check wheel . --no-build-isolation --no-deps -w "$build/wheel/raw" -C build-dir="$build" \
  -C cmake.define.TENON_PYTHON_STATIC=ON -C cmake.define.TENON_BUILD_TESTS=ON -C cmake.define.Python_EXECUTABLE="$python"

raw=("$build"/wheel/raw/*.whl)
tags=$(basename "${raw[0]}" | cut -d - -f 3,4)
rm -f "$build"/wheel/tenon-*-"$tags"-*.whl
PATH="$(dirname "$python"):$PATH" "$python" -m auditwheel repair --strip -w "$build/wheel" "${raw[0]}"
rm -rf "$build/wheel/raw"
ls -l "$build"/wheel/*-"$tags"-*.whl
size=$(stat -c %s "$build"/wheel/*-"$tags"-*.whl)
[ "$size" -lt 80000000 ] || { echo "the wheel has $size bytes; expected less than 80 MB" >&2; exit 1; }
