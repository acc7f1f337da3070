#!/bin/bash
# train.sbatch under a real Slurm with a stand-in for the trainer: ranks from the job's size,
# checkpoint and requeue on SIGUSR1, no requeue of failures or after scancel.
set -euo pipefail
source slurm/testing.sh
slurm/local_cluster.sh start "$cluster" 2 2 >/dev/null

# A stand-in with the trainer's signals and exit codes. Each rank records its number; without a
# "checkpoint" it works until SIGUSR1 and then writes one.
cat >"$cluster/trainer" <<'TRAINER'
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
chmod +x "$cluster/trainer"
export TRITONRL_TRAINER=$cluster/trainer

# 1. Two ranks; USR1; back in the queue; the second start finds the checkpoint and completes.
mkdir "$cluster/a"
job=$(submit --ntasks=2 slurm/train.sbatch "$cluster/a")
wait_until 60 "both ranks work" test -e "$cluster/a/working.0" -a -e "$cluster/a/working.1"
touch "$cluster/a/checkpoint"
scancel --batch --signal=USR1 "$job"
wait_until 90 "the requeued job completes" job_state_is "$job" COMPLETED
[ "$(job_field "$job" Restarts)" = 1 ] || fail "restarts: $(job_field "$job" Restarts)"
[ -e "$cluster/a/saved.0" ] && [ -e "$cluster/a/saved.1" ] || fail "a rank did not get the signal"
[ -e "$cluster/a/finished.0" ] && [ -e "$cluster/a/finished.1" ] || fail "the second start did not go on"
[ "$(sort -u "$cluster/a/ranks" | tr '\n' ,)" = "0 of 2,1 of 2," ] || fail "ranks: $(cat "$cluster/a/ranks")"
grep -q "start 2: 2 ranks" "$cluster/job-$job.log" || fail "the log does not tell the second start"

# 2. A trainer that fails is not tried again, and its exit code is the job's.
mkdir "$cluster/b"
job=$(submit --ntasks=1 slurm/train.sbatch "$cluster/b" broken)
wait_until 60 "the job fails" job_state_is "$job" FAILED
[ "$(job_field "$job" ExitCode)" = 3:0 ] || fail "exit code $(job_field "$job" ExitCode)"
[ "$(job_field "$job" Restarts)" = 0 ] || fail "a failure was tried again"

# 3. scancel ends it for good after the ranks got the signal: sent to the whole job, or to the script.
for told in full batch; do
  mkdir "$cluster/$told"
  job=$(submit --ntasks=1 slurm/train.sbatch "$cluster/$told")
  wait_until 60 "the rank works" test -e "$cluster/$told/working.0"
  scancel "--$told" --signal=TERM "$job"
  wait_until 60 "the job ends" job_ended "$job"
  [ -e "$cluster/$told/terminated.0" ] || fail "the rank was not told"
  [ "$(job_field "$job" Restarts)" = 0 ] || fail "a cancelled job was tried again"
done

# 4. Restarts are limited.
mkdir "$cluster/d"
job=$(TRITONRL_MAX_RESTARTS=0 submit --ntasks=1 slurm/train.sbatch "$cluster/d")
wait_until 60 "the rank works" test -e "$cluster/d/working.0"
scancel --batch --signal=USR1 "$job"
wait_until 60 "the job fails" job_state_is "$job" FAILED
grep -q "restarted 0 times already" "$cluster/job-$job.log" || fail "no word about the limit"

# 5. The error names a trainer that was not built.
job=$(TRITONRL_TRAINER=/no/trainer submit --ntasks=1 slurm/train.sbatch)
wait_until 60 "the job fails" job_state_is "$job" FAILED
grep -q "there is no trainer at /no/trainer; build it" "$cluster/job-$job.log" || fail "no such sentence"
echo PASSED
