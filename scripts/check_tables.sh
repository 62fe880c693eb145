#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the generated tables of docs/, and the summaries of passes in the Python package, are what the program says;
# with --update writes them.
#
#     scripts/check_tables.sh [--update] [build/bin/tenon]
set -euo pipefail
cd "$(dirname "$0")/.."
update=false
if [ "${1:-}" = --update ]; then update=true; shift; fi
tenon=${1:-build/bin/tenon}

status=0
for pair in passes:passes options:options operators:onnx-operators 'operators --graph:operators' relay-operators:relay-operators diagnostics:diagnostics; do
  page=docs/${pair#*:}.md
  read -ra command <<< "${pair%:*}"
  text=$("$tenon" "${command[@]}" --markdown)
  if $update; then
    printf '%s\n' "$text" > "$page"
  elif ! printf '%s\n' "$text" | diff -u "$page" - ; then
    echo "$page is not current: scripts/check_tables.sh --update"
    status=1
  fi
done
if $update; then python3 scripts/check_pass_stubs.py --update || status=1; else python3 scripts/check_pass_stubs.py || status=1; fi
exit $status
