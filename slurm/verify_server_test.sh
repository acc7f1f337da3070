#!/bin/bash
# verify_server.sbatch under a real Slurm with the real server: a client finds it, it requeues itself
# on USR1 and ends on TERM.
set -euo pipefail
source slurm/testing.sh
slurm/local_cluster.sh start "$cluster" 1 2 >/dev/null

export TRITONRL_SERVER=$PWD/exec/service/server
TRITONRL_RUNFILES=$(dirname "$PWD")
export TRITONRL_RUNFILES
run=$cluster/run
examples=verify/examples

registered() { [ -n "$(ls "$run/servers" 2>/dev/null)" ]; }
gone() { ! registered; }
log_has() { grep -q "$1" "$log"; }
check() { # CANDIDATE EXIT_CODE
  local code=0
  timeout 120 verify/cli/verify --servers="$run/" --reference=$examples/softmax_reference.py \
    --candidate="$examples/$1" >"$cluster/verdict.log" 2>&1 || code=$?
  [ "$code" = "$2" ] || { cat "$cluster/verdict.log" >&2; fail "$1: exit code $code"; }
}

job=$(submit slurm/verify_server.sbatch --register="$run" --backend=native --workers=1)
log=$cluster/job-$job.log
wait_until 120 "the server is registered" registered
check softmax_honest.py 0
check softmax_wrong.py 1

scancel --batch --signal=USR1 "$job"
wait_until 120 "it is back in the queue" log_has "back into the queue"
wait_until 180 "its second start" log_has "start 2: server"
wait_until 120 "the server is registered again" registered
check softmax_honest.py 0

scancel --batch --signal=TERM "$job"
wait_until 120 "the job ends" job_ended "$job"
wait_until 10 "its registration is gone" gone
[ "$(job_field "$job" JobState)" = COMPLETED ] || fail "ended as $(job_field "$job" JobState)"
echo PASSED
