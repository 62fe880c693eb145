#!/usr/bin/env bash
# Generates the larger test networks: make_models.sh GENERATOR OUT. Nothing happens where OUT is complete already.
set -euo pipefail
generator=$1 out=$2

if [ -f "$out/.complete" ]; then exit 0; fi
if [ ! -f "$generator" ]; then
  echo "make_models.sh: $generator is missing; say where it lies with SHARED=DIR (it is not part of this repository)" >&2
  exit 1
fi
"$(dirname "$0")/setup.sh" models
mkdir -p "$out"
# Debian's python3, for which python3-torch is installed.
missing=()
for name in $(/usr/bin/python3 "$generator" --list | awk '{print $1}'); do
  [ -f "$out/$name/info.json" ] || missing+=("$name")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "models: generating ${missing[*]}"
  /usr/bin/python3 "$generator" --out "$out" --only "$(IFS=,; echo "${missing[*]}")"
fi
touch "$out/.complete"
