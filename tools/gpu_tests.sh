#!/bin/bash
# Tests and benchmarks for a GPU machine that has torch but no build tools.
#   tools/gpu_tests.sh build OUT.tar.gz           packs them with tools/bundle.sh, and this script as gpu_tests
# On the GPU machine, in the folder of the unpacked archive:
#   ./gpu_tests [--only=NAME] [--csv=OUT.csv]     runs all of them, or one; writes gpu_tests.csv
# Prints a line for each: PASSED, FAILED (with the end of its output) or SKIPPED (no GPU, or no case ran), and the
# numbers of cases. Logs are in gpu_tests_logs. Exit code 1 if any failed. The table is kept in results/gpu_tests.csv.
set -uo pipefail

# Tests must be linkstatic. Those with equal names are named by their labels (name_of).
tests=(
  //model:device_test //model/weights:gradient_ring_buffer_test //rollout/cuda:device_test
  //trainer/checkpoint:optimizer_state_test //trainer/optimizer:adamw_test
)
benches=(//bench/model:step_bench //bench/rollout:engine_bench //bench/rollout:kernel_bench)
# Arguments with which a benchmark takes about a minute, enough to show that it works.
declare -A short=(
  [step_bench]="--shape=qwen3_0p6b --lengths=2048,2048 --steps=2 --kernels=0"
  [engine_bench]="--shape=qwen3_0p6b --cases=8x256x128 --step_seconds=0.5 --kernels=0"
  [kernel_bench]="--only=step"
)

# name_of LABEL: the program's name in the archive.
name_of() {
  local name=${1/*:/}
  if [ "$(printf '%s\n' "${tests[@]/*:/}" "${benches[@]/*:/}" | grep -cx "$name")" -gt 1 ]; then
    name=$(tr '/:' '__' <<< "${1#//}")
  fi
  echo "$name"
}

if [ "${1:-}" = build ]; then
  if [ $# != 2 ]; then echo "usage: tools/gpu_tests.sh build OUT.tar.gz" >&2 && exit 2; fi
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  exec "$here/bundle.sh" "$2" "${tests[@]}" "${benches[@]}" "$here/gpu_tests.sh"
fi

only=
csv=gpu_tests.csv
for argument in "$@"; do
  case $argument in
    --only=*) only=${argument#*=} ;;
    --csv=*) csv=${argument#*=} ;;
    *) echo "usage: ./gpu_tests [--only=NAME] [--csv=OUT.csv]" >&2 && exit 2 ;;
  esac
done
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
logs=$here/gpu_tests_logs
mkdir -p "$logs"
echo "id,kind,name,status,passed,failed,skipped,seconds" > "$csv" || exit 2

# cases WORD LOG: prints the number of gtest lines "[  WORD  ] Suite.Name (12 ms)".
cases() { grep -cE "^\[ *$1 *\] .*\([0-9]+ ms\)$" "$2"; }

has_gpu() { compgen -G "${TRITONRL_GPU_FILES:-/dev/nvidia[0-9]*}" > /dev/null; }

count=0
broken=0
# run_one KIND NAME [ARGUMENTS]: runs one test or bench and reports it, unless --only names another.
run_one() {
  local kind=$1 name=$2 log=$logs/$2.log start=$SECONDS code=0 status=PASSED passed=0 failed=0 skipped=0
  shift 2
  if [ -n "$only" ] && [ "$only" != "$name" ]; then return; fi
  if [ "$kind" = bench ] && ! has_gpu; then
    echo "no GPU" > "$log"
    status=SKIPPED
  else
    timeout 1800 "$here/run" "$name" "$@" > "$log" 2>&1
    code=$?
  fi
  if [ "$kind" = test ]; then
    passed=$(cases OK "$log") failed=$(cases FAILED "$log") skipped=$(cases SKIPPED "$log")
    if [ "$passed" = 0 ]; then status=SKIPPED; fi
    # A test without any case, not even a skipped one, counts as failed.
    if [ "$((passed + failed + skipped))" = 0 ]; then status=FAILED; fi
  fi
  if [ "$code" != 0 ] || [ "$failed" != 0 ]; then status=FAILED; fi
  if [ "$status" = FAILED ]; then
    broken=1
    tail -n 20 "$log" | sed 's/^/  | /'
    echo "  exit code $code; all of it: $log"
  fi
  count=$((count + 1))
  printf '%-7s  %-5s  %-26s %4d passed  %3d failed  %3d skipped  %4d s\n' \
    "$status" "$kind" "$name" "$passed" "$failed" "$skipped" "$((SECONDS - start))"
  printf 'gpu_tests-%03d,%s,%s,%s,%d,%d,%d,%d\n' \
    "$count" "$kind" "$name" "$status" "$passed" "$failed" "$skipped" "$((SECONDS - start))" >> "$csv"
}

for label in "${tests[@]}"; do run_one test "$(name_of "$label")" --gtest_color=no; done
for label in "${benches[@]}"; do
  name=$(name_of "$label")
  # shellcheck disable=SC2086  # the settings are words
  run_one bench "$name" ${short[$name]:-}
done
if [ "$count" = 0 ]; then echo "gpu_tests: --only=$only is none of its tests and benches." >&2 && exit 2; fi
exit "$broken"
