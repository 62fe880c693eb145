#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs bench/compare.py under a Python that has the peers from PyPI (python.sh). All options go through.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "$("$here/python.sh")" "$here/compare.py" "$@"
