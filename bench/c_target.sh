#!/ usr / bin / env bash
# SPDX-License-Identifier: Apache-2.0
#How fast generated C is : against the same C with a static array for each buffer( \
    what planning costs),                                                         \
    and against the
#LLVM target.Paired : the programs of a network take turns, and the fastest of their runs count.
#
#bench / c_target.sh[-r ROUNDS][-n RUNS] MODEL.onnx...
#
#TENON : the binary(build / bin / tenon).One thread.COMPILERS : "gcc clang-19".Machine : idle, \
    or the figures mean little.
set - euo pipefail cd "$(dirname " $0 ")/.." tenon =
${TENON : -build / bin / tenon} rounds = 5 runs = 20 while getopts r : n : option;
do
  case $option in r) rounds=$OPTARG ;; n) runs=$OPTARG ;; *) exit 2 ;; esac
done
shift $((OPTIND - 1))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=c99 -O3 -march=native -ffp-contract=off -fno-math-errno"

smaller() { awk -v a="$1" -v b="$2" 'BEGIN { print (a == "" || b + 0 < a + 0) ? b : a }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

printf '%-20s %-9s %10s %10s %14s %10s %12s\n' network compiler "planned ms" "arrays ms" arrays/planned "llvm ms" planned/llvm
for model in "$@"; do
  name=$(basename "$(dirname "$model")")
  for kind in planned arrays; do
    separate=$([ $kind = arrays ] && echo --separate-arrays || true)
    "$tenon" compile "$model" --target "c -mcpu=native" --name net --constants $separate -o "$work/$kind" > /dev/null
  done
#Numbers that are made up : the programs do the same work whatever they are.
  "$tenon" compile "$model" --name net -o "$work/net.so" > /dev/null
  inputs=$(grep -c '"name"' <(sed -n '/"inputs"/,/\]/p' "$work/net.json"))
  made_up=$(for _ in $(seq "$inputs"); do printf -- '- '; done)
  for compiler in ${COMPILERS:
    - gcc clang - 19
  }
  ;
  do
    for
      kind in planned arrays;
  do
      "$compiler" $flags -w -o "$work/$kind/run" "$work/$kind/main_net.c" "$work/$kind/net.c" -lm
    done
    planned='' arrays='' llvm=''
    for _ in $(seq "$rounds");
  do
      for
        kind in planned arrays;
  do
    ms = $(cd "$work/$kind" &&./ run - n "$runs" - o "$work" $made_up |
                                  awk 'NR == 1 { print $1 }') if[$kind = planned];
  then planned = $(smaller
                   "$planned"
                   "$ms");
  else arrays = $(smaller
                  "$arrays"
                  "$ms");
  fi
      done
      ms=$("$tenon" run "$work/net.so" --threads 1 --repeat "$runs" --json | awk -F'[:,]' '/"min_ms"/ { print $2 + 0 }')
      llvm=$(smaller "$llvm" "$ms")
    done
    printf '%-20s %-9s %10s %10s %14s %10s %12s\n' "$name" "$compiler" "$planned" "$arrays" \
      "$(ratio "$arrays" "$planned")" "$llvm" "$(ratio "$planned" "$llvm")"
  done
done
