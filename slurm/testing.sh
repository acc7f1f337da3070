# Sourced by the tests of this folder: starts their own Slurm cluster and queries its jobs.

cluster=$(mktemp -d /tmp/slurm.XXXXXX)
stop_cluster() {
  slurm/local_cluster.sh stop "$cluster"
  rm -rf "$cluster"
}
trap stop_cluster EXIT
export SLURM_CONF=$cluster/slurm.conf

fail() {
  echo "FAILED: $*" >&2
  for log in "$cluster"/*.log "$cluster"/log/slurmctld.log; do
    [ -f "$log" ] && { echo "--- $log" >&2 && tail -n 40 "$log" >&2; }
  done
  exit 1
}

# wait_until SECONDS WHAT COMMAND...: waits until the command succeeds.
wait_until() {
  local seconds=$1 what=$2 i
  shift 2
  for ((i = 0; i < seconds * 5; i++)); do
    "$@" && return
    sleep 0.2
  done
  fail "not within $seconds s: $what"
}

job_field() { # JOB FIELD
  scontrol show job "$1" -o 2>/dev/null | tr ' ' '\n' | sed -n "s/^$2=//p" | head -1
}
job_state_is() { [ "$(job_field "$1" JobState)" = "$2" ]; }
job_ended() { [[ "$(job_field "$1" JobState)" =~ COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL ]]; }

# submit ARGUMENTS...: sbatch of train.sbatch with its log in the cluster's folder; prints the job's number.
submit() { sbatch --parsable --output="$cluster/job-%j.log" --time=10 "$@"; }
