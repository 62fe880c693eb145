#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Generates networks: make_models.sh OUT [GENERATOR], make_models.py where none is named. Nothing happens where OUT has them all.
set -euo pipefail
out=$1
script=${2:-make_models.py}
here=$(cd "$(dirname "$0")" && pwd)

if [ "$out/.complete" -nt "$here/$script" ]; then exit 0; fi
"$here/setup.sh" models
mkdir -p "$out"
# Debian's python3, for which python3-torch is installed.
generator=(/usr/bin/python3 "$here/$script")
missing=()
for name in $("${generator[@]}" --list | awk '{print $1}'); do
  [ -f "$out/$name/info.json" ] || missing+=("$name")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "models: generating ${missing[*]}"
  "${generator[@]}" --out "$out" --only "$(IFS=,; echo "${missing[*]}")"
fi
touch "$out/.complete"
