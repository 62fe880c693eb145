#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the site and runs the notebooks with what `make docs` installed; skipped (status 77) where it is not there: test.sh BUILD.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
python=$build/docs-venv/bin/python
[ -x "$python" ] || { echo "test.sh: skipped: there is no $python; \`make docs\` installs it"; exit 77; }
export PYTHONPATH=$build/python
"$python" "$here/../../examples/notebooks/run.py"
"$python" "$here/build.py" "$build/docs"
