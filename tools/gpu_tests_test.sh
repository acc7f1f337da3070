#!/bin/bash
# Tests the output, the table and the exit code of gpu_tests with stand-in programs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp tools/gpu_tests.sh "$folder/gpu_tests"
export TRITONRL_GPU_FILES="$folder/no-gpu*"
echo 1234567 > "$folder/commit"
mkdir "$folder/bin"
cat > "$folder/bin/mpirun" << 'MPIRUN'
#!/bin/bash
echo "ranks $2" && shift 2 && "$@"
MPIRUN
cat > "$folder/bin/nvidia-smi" << 'SMI'
#!/bin/bash
printf 'NVIDIA H200\nNVIDIA H200\n'
SMI
chmod +x "$folder"/bin/*
export PATH="$folder/bin:$PATH"

cat > "$folder/run" << 'RUN'
#!/bin/bash
ok() { echo "[       OK ] Suite.Case$1/0 (3 ms)"; }
case $1 in
  model_device_test) ok 1 && ok 2 && echo "[  SKIPPED ] Suite.Case3/0 (0 ms)" && echo "[  SKIPPED ] 1 test, listed below:" ;;
  rollout_cuda_device_test) echo "[  SKIPPED ] Suite.Case/0 (0 ms)" ;;
  gradient_ring_buffer_test) echo "nothing runs" ;;
  optimizer_state_test | cuda_*_test | replay_timer_test) ok 1 ;;
  adamw_test) ok 1 && echo "[  FAILED  ] Suite.Case2/0, where GetParam() = 1 (3 ms)" && exit "${ADAMW_CODE:-1}" ;;
  *_bench) echo "$@" && [ "$1" != engine_bench ] ;;
  *_program) echo "$@" ;;
esac
RUN
chmod +x "$folder/run"

# check NAME CODE ARGUMENTS...: runs gpu_tests and checks its exit code; leaves the first columns
# of its table in NAME.csv, all in NAME.all.
check() {
  local code=0
  "$folder/gpu_tests" --csv="$folder/$1.csv" "${@:3}" > "$folder/$1.txt" 2>&1 || code=$?
  if [ "$code" != "$2" ]; then cat "$folder/$1.txt" && echo "$1: exit code $code instead of $2" && exit 1; fi
  if [ -e "$folder/$1.csv" ]; then
    mv "$folder/$1.csv" "$folder/$1.all"
    cut -d, -f1-7 "$folder/$1.all" > "$folder/$1.csv"
  fi
}

check no_gpu 1
diff - "$folder/no_gpu.csv" << 'CSV'
id,kind,name,status,passed,failed,skipped
gpu_tests-001,test,model_device_test,PASSED,2,0,1
gpu_tests-002,test,gradient_ring_buffer_test,FAILED,0,0,0
gpu_tests-003,test,rollout_cuda_device_test,SKIPPED,0,0,1
gpu_tests-004,test,optimizer_state_test,PASSED,1,0,0
gpu_tests-005,test,adamw_test,FAILED,1,1,0
gpu_tests-006,test,cuda_client_run_test,PASSED,1,0,0
gpu_tests-007,test,replay_timer_test,PASSED,1,0,0
gpu_tests-008,test,cuda_executor_test,PASSED,1,0,0
gpu_tests-009,bench,step_bench,SKIPPED,0,0,0
gpu_tests-010,bench,model_bench,SKIPPED,0,0,0
gpu_tests-011,bench,engine_bench,SKIPPED,0,0,0
gpu_tests-012,bench,kernel_bench,SKIPPED,0,0,0
gpu_tests-013,bench,load_bench,SKIPPED,0,0,0
gpu_tests-014,bench,update_bench,SKIPPED,0,0,0
gpu_tests-015,ranks,collectives_test_program,SKIPPED,0,0,0
gpu_tests-016,ranks,process_group_test_program,SKIPPED,0,0,0
gpu_tests-017,ranks,tensor_parallel_test_program,SKIPPED,0,0,0
gpu_tests-018,ranks,weight_broadcast_test_program,SKIPPED,0,0,0
CSV
grep -q '| nothing runs' "$folder/no_gpu.txt"

touch "$folder/no-gpu0"
check bench 0 --only=kernel_bench
grep -q '^gpu_tests-001,bench,kernel_bench,PASSED,0,0,0$' "$folder/bench.csv"
grep -q -- '--only=step' "$folder/gpu_tests_logs/kernel_bench.log"
grep -Eq ',[0-9]+,2x H200,1234567,[0-9-]{10},"./run kernel_bench --only=step"$' "$folder/bench.all"
check one_gpu 0 --only=collectives_test_program
grep -q '^gpu_tests-001,ranks,collectives_test_program,SKIPPED,0,0,0$' "$folder/one_gpu.csv"
touch "$folder/no-gpu1"
check two_gpus 0 --only=collectives_test_program
grep -q '"mpirun -n 2 ./run collectives_test_program gpu_sums"$' "$folder/two_gpus.all"
grep -q '^ranks 2$' "$folder/gpu_tests_logs/collectives_test_program.log"
check broken_bench 1 --only=engine_bench
check only 0 --only=optimizer_state_test
[ "$(wc -l < "$folder/only.csv")" = 2 ]
check unknown 2 --only=nothing
check wrong 2 --colour
