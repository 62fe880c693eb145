#!/usr/bin/env bash
# clang-tidy over the C++ sources that differ from main (committed or not); `lint.sh all`: over all. Needs a configured build/.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  all) mapfile -t files < <(git ls-files 'src/*.cpp' 'examples/*.cpp') ;;
  "")
    base=$(git merge-base HEAD origin/main 2> /dev/null || git merge-base HEAD main)
    mapfile -t files < <({ git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'examples/*.cpp'
                           git ls-files --others --exclude-standard 'src/*.cpp' 'examples/*.cpp'; } | sort -u)
    ;;
  *) echo "usage: scripts/lint.sh [all]" >&2; exit 2 ;;
esac
[ "${#files[@]}" -gt 0 ] || { echo "lint: no C++ source changed"; exit 0; }

# clang-tidy stumbles over flags that only g++ knows (-Wno-maybe-uninitialized): they are no error here.
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 -p build --quiet --extra-arg=-Wno-unknown-warning-option
