#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Generates the larger test networks: make_models.sh OUT. Nothing happens where OUT is complete already.
set -euo pipefail
out=$1
here=$(cd "$(dirname "$0")" && pwd)

if [ -f "$out/.complete" ]; then exit 0; fi
"$here/setup.sh" models
mkdir -p "$out"
# Debian's python3, for which python3-torch is installed.
generator=(/usr/bin/python3 "$here/make_models.py")
missing=()
for name in $("${generator[@]}" --list | awk '{print $1}'); do
  [ -f "$out/$name/info.json" ] || missing+=("$name")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "models: generating ${missing[*]}"
  "${generator[@]}" --out "$out" --only "$(IFS=,; echo "${missing[*]}")"
fi
touch "$out/.complete"
