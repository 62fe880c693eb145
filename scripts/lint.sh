#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over the C++ sources that differ from main (committed or not), on main itself over those of its last commit.
# Of a file that is in the commit compared with, the lines that changed count.
# `lint.sh all`: over all. Needs a configured build/. LINT_BASE: another commit to compare with. LINT_SECONDS: begins no file after so
# many seconds, and names those that are left.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  all) mapfile -t files < <(git ls-files 'src/*.cpp' 'examples/*.cpp') ;;
  "")
    main=$(git rev-parse -q --verify origin/main || git rev-parse main)
    base=${LINT_BASE:-$(git merge-base HEAD "$main")}
    if [ "$(git rev-parse "$base")" = "$(git rev-parse HEAD)" ]; then base=$(git rev-parse -q --verify HEAD~1 || echo HEAD); fi
    mapfile -t files < <({ git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'examples/*.cpp'
                           git ls-files --others --exclude-standard 'src/*.cpp' 'examples/*.cpp'; } | sort -u)
    export base
    ;;
  *) echo "usage: scripts/lint.sh [all]" >&2; exit 2 ;;
esac
[ "${#files[@]}" -gt 0 ] || { echo "lint: no C++ source changed"; exit 0; }

# The compile commands but those of the readers' fuzzers, which name the same sources and a precompiled header that a plain build does
# not make.
mkdir -p build/lint
python3 - build/compile_commands.json build/lint/compile_commands.json << 'EOF'
import json, sys
commands = [each for each in json.load(open(sys.argv[1])) if "fuzz_readers.dir" not in each["command"]]
json.dump(commands, open(sys.argv[2], "w"))
EOF

left=$(mktemp)
trap 'rm -f "$left"' EXIT
# clang-tidy stumbles over flags that only g++ knows (-Wno-maybe-uninitialized): they are no error here.
lint_one() {
  local filter
  if [ -n "${LINT_SECONDS:-}" ] && [ $(($(date +%s) - $1)) -ge "$LINT_SECONDS" ]; then echo "$3" >> "$2"; return 0; fi
  # Of a file that is in the commit compared with, the lines that changed: [{"name": FILE, "lines": [[FIRST, LAST], ...]}]; of a new one
  # all, without those of its headers.
  filter=("--line-filter=[{\"name\":\"$3\"}]")
  if [ -n "${base:-}" ] && git cat-file -e "$base:$3" 2> /dev/null; then
    filter=("--line-filter=$(git diff -U0 "$base" -- "$3" | awk -v name="$3" '/^@@/ {
      split(substr($3, 2), at, ","); count = at[2] == "" ? 1 : at[2]
      if (count > 0) { lines = lines sep "[" at[1] "," at[1] + count - 1 "]"; sep = "," }
    } END { print "[{\"name\":\"" name "\",\"lines\":[" (lines == "" ? "[1,1]" : lines) "]}]" }')")
  fi
  clang-tidy-19 -p build/lint --quiet "${filter[@]}" --extra-arg=-Wno-unknown-warning-option "$3"
}
export -f lint_one
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'lint_one "$@"' lint "$(date +%s)" "$left"
echo "lint: $((${#files[@]} - $(wc -l < "$left"))) of ${#files[@]} changed sources without a finding"
if [ -s "$left" ]; then
  echo "lint: not begun within $LINT_SECONDS s (\`make lint\` takes all):"
  cat "$left"
fi
