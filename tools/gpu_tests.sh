#!/bin/bash
# Tests and benchmarks for a GPU machine that has torch but no build tools.
#   tools/gpu_tests.sh build OUT.tar.gz           packs them with tools/bundle.sh, and this script as gpu_tests
# On the GPU machine, in the folder of the unpacked archive:
#   ./gpu_tests [--only=NAME] [--csv=OUT.csv]     runs all of them, or one; writes gpu_tests.csv
# Prints a line for each: PASSED, FAILED (with the end of its output) or SKIPPED (no GPU, one GPU, or no case ran), and
# the numbers of cases. Logs are in gpu_tests_logs. Exit code 1 if any failed. The table is kept in
# results/gpu_tests.csv.
set -uo pipefail

# The archive must stay below 64 MiB (bundle.sh prints its size): not every bench is here.
# Tests must be linkstatic. Those with equal names are named by their labels (name_of).
tests=(
  //model:device_test //model/weights:gradient_ring_buffer_test //rollout/cuda:device_test
  //trainer/checkpoint:optimizer_state_test //trainer/optimizer:adamw_test
  //exec/client_run:cuda_client_run_test //exec/device/cuda:replay_timer_test //exec/executor:cuda_executor_test
)
benches=(
  //bench/model:step_bench //bench/model:model_bench //bench/rollout:engine_bench //bench/rollout:kernel_bench
  //bench/rollout:load_bench //bench/trainer:update_bench
)
# Programs that mpirun starts as two ranks, if the machine has two GPUs.
ranks=(
  //parallel/testing:collectives_test_program //parallel/testing:process_group_test_program
  //rollout/distributed/testing:tensor_parallel_test_program
  //rollout/distributed/testing:weight_broadcast_test_program
)
# Arguments with which a program takes about a minute, enough to show that it works.
declare -A short=(
  [step_bench]="--shape=qwen3_0p6b --lengths=2048,2048 --steps=2 --kernels=0"
  [model_bench]="--device=cuda --peer=false --seconds=1"
  [engine_bench]="--shape=qwen3_0p6b --cases=8x256x128 --step_seconds=0.5 --kernels=0"
  [kernel_bench]="--only=step"
  [load_bench]="--shape=qwen3_0p6b --samples=64 --steps=1 --modes=strict"
  [update_bench]="--shape=qwen3_0p6b --lengths=2048,2048 --steps=2 --kernels=0"
  [collectives_test_program]="gpu_sums"
  [process_group_test_program]="gpu_collectives"
  [tensor_parallel_test_program]="gpu_same"
  [weight_broadcast_test_program]="gpu_update"
)

# name_of LABEL: the program's name in the archive.
name_of() {
  local name=${1/*:/}
  if [ "$(printf '%s\n' "${tests[@]/*:/}" "${benches[@]/*:/}" "${ranks[@]/*:/}" | grep -cx "$name")" -gt 1 ]; then
    name=$(tr '/:' '__' <<< "${1#//}")
  fi
  echo "$name"
}

if [ "${1:-}" = build ]; then
  if [ $# != 2 ]; then echo "usage: tools/gpu_tests.sh build OUT.tar.gz" >&2 && exit 2; fi
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  exec "$here/bundle.sh" "$2" "${tests[@]}" "${benches[@]}" "${ranks[@]}" "$here/gpu_tests.sh"
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
echo "id,kind,name,status,passed,failed,skipped,seconds,machine,commit,date,command" > "$csv" || exit 2

# cases WORD LOG: prints the number of gtest lines "[  WORD  ] Suite.Name (12 ms)".
cases() { grep -cE "^\[ *$1 *\] .*\([0-9]+ ms\)$" "$2"; }

gpus=$(compgen -G "${TRITONRL_GPU_FILES:-/dev/nvidia[0-9]*}" | wc -l)
# For example "2x H200"; a table's cell must have no comma.
machine=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | tr -d , | sed 's/^NVIDIA //' |
  sort | uniq -c | sed -E 's/^ *([0-9]+) /\1x /' | paste -sd + -)
machine=${machine:-$(nproc) CPU cores}
commit=$(cat "$here/commit" 2> /dev/null)
date=$(date -u +%F)
# mpirun's checks, for containers in which all programs run as root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

count=0
broken=0
# run_one KIND NAME [ARGUMENTS]: runs one test, bench or program of two ranks and reports it, unless --only names
# another.
run_one() {
  local kind=$1 name=$2 log=$logs/$2.log start=$SECONDS code=0 status=PASSED passed=0 failed=0 skipped=0
  local limit=600 launcher="" lacks=""
  shift 2
  if [ -n "$only" ] && [ "$only" != "$name" ]; then return; fi
  case $kind in
    test) limit=1800 ;;
    bench) if [ "$gpus" -lt 1 ]; then lacks="no GPU"; fi ;;
    ranks)
      launcher="mpirun -n 2 "
      if [ "$gpus" -lt 2 ]; then lacks="fewer than two GPUs"; fi
      if ! command -v mpirun > /dev/null; then lacks="no mpirun"; fi
      ;;
  esac
  if [ -n "$lacks" ]; then
    echo "$lacks" > "$log"
    status=SKIPPED
  else
    # shellcheck disable=SC2086  # the launcher is words
    timeout "$limit" $launcher"$here/run" "$name" "$@" > "$log" 2>&1
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
  printf 'gpu_tests-%03d,%s,%s,%s,%d,%d,%d,%d,%s,%s,%s,"%s"\n' \
    "$count" "$kind" "$name" "$status" "$passed" "$failed" "$skipped" "$((SECONDS - start))" \
    "$machine" "$commit" "$date" "$launcher./run $name${*:+ $*}" >> "$csv"
}

for label in "${tests[@]}"; do run_one test "$(name_of "$label")" --gtest_color=no; done
for label in "${benches[@]}"; do
  name=$(name_of "$label")
  # shellcheck disable=SC2086  # the settings are words
  run_one bench "$name" ${short[$name]:-}
done
for label in "${ranks[@]}"; do
  name=$(name_of "$label")
  # shellcheck disable=SC2086  # the settings are words
  run_one ranks "$name" ${short[$name]:-}
done
if [ "$count" = 0 ]; then echo "gpu_tests: --only=$only is none of its programs." >&2 && exit 2; fi
exit "$broken"
