#!/bin/bash
# train.sbatch under a real Slurm with a stand-in for the trainer: ranks from the job's size,
# checkpoint and requeue on SIGUSR1, no requeue of failures or after scancel.
set -euo pipefail
source slurm/testing.sh
slurm/lab.sh start "$lab" 2 2 >/dev/null

# What the real trainer does with signals and exit codes, in a few lines. Each rank notes its number;
# without a "checkpoint" it works until SIGUSR1 and leaves one.
cat >"$lab/trainer" <<'TRAINER'
#!/bin/bash
dir=$1
mode=${2:-}
[ "$mode" = broken ] && exit 3
echo "$OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE" >>"$dir/ranks"
if [ -e "$dir/checkpoint" ]; then
  touch "$dir/finished.$OMPI_COMM_WORLD_RANK"
  exit 0
fi
trap 'touch "$dir/saved.$OMPI_COMM_WORLD_RANK"; exit 75' USR1
trap 'touch "$dir/terminated.$OMPI_COMM_WORLD_RANK"; exit 75' TERM
touch "$dir/working.$OMPI_COMM_WORLD_RANK"
while true; do sleep 0.1; done
TRAINER
chmod +x "$lab/trainer"
export TRITONRL_TRAINER=$lab/trainer

# 1. Two ranks; USR1; back in the queue; the second start finds the checkpoint and completes.
mkdir "$lab/a"
job=$(submit --ntasks=2 slurm/train.sbatch "$lab/a")
wait_until 60 "both ranks work" test -e "$lab/a/working.0" -a -e "$lab/a/working.1"
touch "$lab/a/checkpoint"
scancel --batch --signal=USR1 "$job"
wait_until 90 "the requeued job completes" job_state_is "$job" COMPLETED
[ "$(job_field "$job" Restarts)" = 1 ] || fail "restarts: $(job_field "$job" Restarts)"
[ -e "$lab/a/saved.0" ] && [ -e "$lab/a/saved.1" ] || fail "a rank did not get the signal"
[ -e "$lab/a/finished.0" ] && [ -e "$lab/a/finished.1" ] || fail "the second start did not go on"
[ "$(sort -u "$lab/a/ranks" | tr '\n' ,)" = "0 of 2,1 of 2," ] || fail "ranks: $(cat "$lab/a/ranks")"
grep -q "start 2: 2 ranks" "$lab/job-$job.log" || fail "the log does not tell the second start"

# 2. A trainer that fails is not tried again, and its exit code is the job's.
mkdir "$lab/b"
job=$(submit --ntasks=1 slurm/train.sbatch "$lab/b" broken)
wait_until 60 "the job fails" job_state_is "$job" FAILED
[ "$(job_field "$job" ExitCode)" = 3:0 ] || fail "exit code $(job_field "$job" ExitCode)"
[ "$(job_field "$job" Restarts)" = 0 ] || fail "a failure was tried again"

# 3. scancel ends it for good, after the ranks were told: everything of the job, or the script alone.
for told in full batch; do
  mkdir "$lab/$told"
  job=$(submit --ntasks=1 slurm/train.sbatch "$lab/$told")
  wait_until 60 "the rank works" test -e "$lab/$told/working.0"
  scancel "--$told" --signal=TERM "$job"
  wait_until 60 "the job ends" job_ended "$job"
  [ -e "$lab/$told/terminated.0" ] || fail "the rank was not told"
  [ "$(job_field "$job" Restarts)" = 0 ] || fail "a cancelled job was tried again"
done

# 4. Restarts are limited.
mkdir "$lab/d"
job=$(TRITONRL_MAX_RESTARTS=0 submit --ntasks=1 slurm/train.sbatch "$lab/d")
wait_until 60 "the rank works" test -e "$lab/d/working.0"
scancel --batch --signal=USR1 "$job"
wait_until 60 "the job fails" job_state_is "$job" FAILED
grep -q "restarted 0 times already" "$lab/job-$job.log" || fail "no word about the limit"

# 5. A trainer that was not built is named.
job=$(TRITONRL_TRAINER=/no/trainer submit --ntasks=1 slurm/train.sbatch)
wait_until 60 "the job fails" job_state_is "$job" FAILED
grep -q "there is no trainer at /no/trainer; build it" "$lab/job-$job.log" || fail "no such sentence"
echo PASSED
