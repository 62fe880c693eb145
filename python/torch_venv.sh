#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Python of its own (build/torch-venv) with torch and what its export to ONNX needs (requirements-torch.txt): installs it where it is
# missing, and prints the path of its interpreter. 2.5 GB come from PyPI, whose torch has CUDA's libraries with it, and 6 GB lie on disk.
# TENON_TORCH_VENV names a folder where such an environment is already.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=${TENON_TORCH_VENV:-${1:-$here/../build}/torch-venv}

if ! cmp -s "$here/requirements-torch.txt" "$venv/installed.txt"; then
  "$here/../scripts/setup.sh" python >&2
  echo "torch: installing $(tr '\n' ' ' < "$here/requirements-torch.txt")" >&2
  "${PYTHON:-python3}" -m venv "$venv"
  "$venv/bin/pip" -q --disable-pip-version-check install -r "$here/requirements-torch.txt" >&2
  cp "$here/requirements-torch.txt" "$venv/installed.txt"
fi
echo "$venv/bin/python"
