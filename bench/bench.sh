#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs bench/compare.py under a Python that has the peers from PyPI (python.sh, and peers.txt: a line that cannot be installed costs
# its peer and nothing else). torch (5 GB) is installed by hand: pip install torch torchvision onnx2torch. All options go through.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/python.sh")
installed=$(dirname "$python")/../peers.txt
if ! cmp -s "$here/peers.txt" "$installed"; then
  while read -r -a packages; do
    echo "bench: installing ${packages[*]}" >&2
    "$python" -m pip -q --disable-pip-version-check install "${packages[@]}" >&2 || echo "bench: left out: ${packages[*]}" >&2
  done < "$here/peers.txt"
  cp "$here/peers.txt" "$installed"
fi
exec "$python" "$here/compare.py" "$@"
