#!/usr/bin/env bash
# Runs every reader of foreign bytes under libFuzzer for SECONDS each: scripts/fuzz_readers.sh SECONDS [READER...]
# The build is the preset `fuzz` (build-fuzz). New inputs that reach new code are kept in build-fuzz/corpus/READER, an input
# at fault in build-fuzz/faults; the exit status is 1 where there is one. Prints a line for each reader.
set -u
cd "$(dirname "$0")/.."
seconds=${1:?seconds for each reader}
shift
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=(onnx tensor script relay params npy csv pipeline pattern answer constants metadata)
bin=build-fuzz/bin
[ -x $bin/fuzz_readers ] || { cmake --preset fuzz && cmake --build build-fuzz --target fuzz_readers; } || exit 2
mkdir -p build-fuzz/faults
status=0
for reader in "${readers[@]}"; do
  corpus=build-fuzz/corpus/$reader
  mkdir -p "$corpus"
  seeds=(tests/fuzz/corpus/$reader)
  case $reader in  # what the repository has anyway
    onnx) mkdir -p build-fuzz/more/onnx && cp -u examples/*/*.onnx build-fuzz/more/onnx && seeds+=(build-fuzz/more/onnx) ;;
    script) seeds+=(tests/golden/script/forms tests/kernels) ;;
    relay) seeds+=(tests/golden/relay) ;;
    pattern) seeds+=(tests/patterns) ;;
  esac
  log=build-fuzz/$reader.log
  $bin/libfuzzer_$reader -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=65536 \
    -artifact_prefix="build-fuzz/faults/$reader-" -print_final_stats=1 -verbosity=1 "$corpus" "${seeds[@]}" >"$log" 2>&1
  result=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  covered=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -1)
  if [ $result -eq 0 ]; then
    printf '%-10s %12s executions, %6s edges\n' "$reader" "${executions:-0}" "${covered:-?}"
  else
    status=1
    printf '%-10s FAULT, see %s and build-fuzz/faults\n' "$reader" "$log"
    grep -m3 -E 'ERROR|SUMMARY|terminate' "$log" | sed 's/^/    /'
  fi
done
exit $status
