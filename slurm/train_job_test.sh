#!/bin/bash
# train.sbatch under a real Slurm with the real trainer: two MPI ranks train two steps; after the first
# the job is requeued with a checkpoint, resumes and finishes.
set -euo pipefail
source slurm/testing.sh
slurm/local_cluster.sh start "$cluster" 1 2 >/dev/null

export TRITONRL_TRAINER=$PWD/trainer/grpo/grpo_hrd
# The data files of this test include the trainer's.
TRITONRL_RUNFILES=$(dirname "$PWD")
export TRITONRL_RUNFILES
run=$cluster/run
settings=(steps=2 prompts_per_step=2 group_size=4 threads=1 output_dir="$run" eval.samples=0
  eval.greedy=false verifier.workers=1 verifier.trials=1 checkpoint.every=100)
arguments=(--config=trainer/configs/grpo_hrd_mini.textproto)
for setting in "${settings[@]}"; do arguments+=(--set "$setting"); done

lines() { [ "$(cat "$run/metrics.jsonl" 2>/dev/null | wc -l)" -ge "$1" ]; }

job=$(submit --ntasks=2 slurm/train.sbatch "${arguments[@]}")
wait_until 120 "the first step is done" lines 1
scancel --batch --signal=USR1 "$job"
wait_until 180 "the requeued job completes" job_state_is "$job" COMPLETED
log=$cluster/job-$job.log
[ "$(job_field "$job" Restarts)" = 1 ] || fail "restarts: $(job_field "$job" Restarts)"
grep -q "start 2: 2 ranks" "$log" || fail "no second start with two ranks"
grep -q "Resuming after step 1 of 2." "$log" || fail "the second start did not go on"
[ "$(wc -l <"$run/metrics.jsonl")" -eq 2 ] || fail "metrics.jsonl does not hold two steps"
[ -s "$run/model/model.safetensors" ] || fail "there is no trained model"
echo PASSED
