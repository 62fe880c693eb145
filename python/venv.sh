#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Python of its own with what a part of the package needs: installs it where it is missing, and prints the path of its interpreter.
#
#   venv.sh [BUILD [python]]   BUILD/python-venv: building and testing it (requirements.txt)
#   venv.sh BUILD docs         BUILD/docs-venv: the site and the notebooks (docs/site/requirements.txt)
#   venv.sh BUILD wheel        BUILD/wheel-venv: a wheel for another Python than that of python-venv (requirements-wheel.txt)
#
# PYTHON names the one that it is made of (3.11 or newer; default: python3); the extension of the package is for the one of python-venv.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../build}
part=${2:-python}
case "$part" in
  python) requirements=$here/requirements.txt made_of=${PYTHON:-python3} ;;
  docs) requirements=$here/../docs/site/requirements.txt made_of=$build/python-venv/bin/python ;;
  wheel) requirements=$here/requirements-wheel.txt made_of=${PYTHON:-python3} ;;
  *) echo "venv.sh: unknown part '$part' (python, docs, wheel)" >&2; exit 2 ;;
esac
venv=$build/$part-venv

if ! cmp -s "$requirements" "$venv/installed.txt"; then
  "$here/../scripts/setup.sh" python >&2
  echo "$part: installing $(grep -v '^#' "$requirements" | tr '\n' ' ')" >&2
  "$made_of" -m venv "$venv"
  if ! "$venv/bin/pip" -q --disable-pip-version-check install -r "$requirements" >&2; then
    echo "$part: what is listed in $requirements could not be installed from PyPI; where there is no network, give pip a folder of wheels" \
         "(PIP_FIND_LINKS, PIP_NO_INDEX)" >&2
    exit 1
  fi
  cp "$requirements" "$venv/installed.txt"
fi
echo "$venv/bin/python"
