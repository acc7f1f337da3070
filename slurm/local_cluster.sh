#!/bin/bash
# A small Slurm cluster on this machine, without systemd, for tests and trials of sbatch scripts:
#
#   slurm/local_cluster.sh start DIR [NODES [CPUS]]   starts it; all its files are below DIR
#   export SLURM_CONF=DIR/slurm.conf        then sbatch, squeue, scontrol, ... talk to it
#   slurm/local_cluster.sh stop DIR                   ends it with all its jobs
#
# It has NODES nodes (2), node0, node1, ..., with CPUS cores (2) each, independent of the machine's
# cores. DIR must be at most 60 characters long, because it holds a socket.
set -euo pipefail

fail() {
  echo "local_cluster.sh: $*" >&2
  exit 1
}

# Three free ports in a row, chosen by process id.
free_port() {
  local port=$((20000 + ($$ * 7 + RANDOM) % 20000))
  while ss -Htln "sport >= :$port and sport <= :$((port + 16))" 2>/dev/null | grep -q .; do
    port=$((port + 17))
  done
  echo "$port"
}

start_munge() {
  local dir=$1
  mkdir -p "$dir/munge"
  chmod 755 "$dir" "$dir/munge"
  head -c 1024 /dev/urandom >"$dir/munge.key"
  chmod 400 "$dir/munge.key"
  # --force: DIR may lie below a folder that others can write to, such as /tmp.
  munged --force --key-file="$dir/munge.key" --socket="$dir/munge/socket" \
    --pid-file="$dir/munge/munged.pid" --log-file="$dir/munge/munged.log" \
    --seed-file="$dir/munge/seed" 2>/dev/null || fail "munged did not start; see $dir/munge/munged.log"
}

write_config() {
  local dir=$1 nodes=$2 cpus=$3 port=$4 host user
  host=$(hostname -s)
  user=$(id -un)
  mkdir -p "$dir"/{state,spool,log,tmp}
  cat >"$dir/slurm.conf" <<CONF
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
CredType=cred/munge
# Short-lived credentials: a requeued job may start again after about 11 s instead of 121 s.
AuthInfo=socket=$dir/munge/socket,cred_expire=5
SlurmctldPort=$port
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmdSpoolDir=$dir/spool/%n
TmpFS=$dir/tmp/%n
StateSaveLocation=$dir/state
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
# No control groups: works inside containers too.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
SlurmdTimeout=30
SlurmctldTimeout=30
InactiveLimit=0
JobRequeue=1
MailProg=/bin/true
PartitionName=local Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  local i
  for ((i = 0; i < nodes; i++)); do
    echo "NodeName=node$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1 + i)) CPUs=$cpus" \
      >>"$dir/slurm.conf"
    mkdir -p "$dir/spool/node$i" "$dir/tmp/node$i"
    chmod 1777 "$dir/tmp/node$i"
  done
  # Slurm 22.05 always reads this file, and fails on "disabled".
  echo "CgroupPlugin=cgroup/v1" >"$dir/cgroup.conf"
}

start() {
  local dir=$1 nodes=${2:-2} cpus=${3:-2} program i
  for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || PATH=$PATH:/usr/sbin command -v "$program" >/dev/null ||
      fail "$program is not installed: run ./bazelw, which installs Slurm and Munge"
  done
  [ ${#dir} -le 60 ] || fail "$dir is too long a name for a folder with sockets"
  mkdir -p "$dir"
  start_munge "$dir"
  write_config "$dir" "$nodes" "$cpus" "$(free_port)"
  export SLURM_CONF=$dir/slurm.conf
  slurmctld -c
  for ((i = 0; i < nodes; i++)); do slurmd -N "node$i"; done
  for ((i = 0; i < 120; i++)); do
    if [ "$(sinfo -h -N -t idle 2>/dev/null | wc -l)" -eq "$nodes" ]; then
      echo "export SLURM_CONF=$dir/slurm.conf"
      return
    fi
    sleep 0.25
  done
  stop "$dir"
  fail "the nodes did not come up in 30 s; see $dir/log"
}

# Ends the processes that `start` started, by their recorded ids.
stop() {
  local dir=$1 file i
  export SLURM_CONF=$dir/slurm.conf
  scancel --full --signal=KILL --user="$(id -un)" 2>/dev/null || true
  for file in "$dir"/slurmd-*.pid "$dir/slurmctld.pid" "$dir/munge/munged.pid"; do
    [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null || true
  done
  for ((i = 0; i < 40; i++)); do
    compgen -G "$dir/slurmd-*.pid" >/dev/null || [ -e "$dir/slurmctld.pid" ] || return 0
    sleep 0.25
  done
}

export PATH=$PATH:/usr/sbin:/sbin
case "${1:-}" in
  start) start "${2:?folder}" "${@:3}" ;;
  stop) stop "${2:?folder}" ;;
  *) fail "usage: local_cluster.sh start DIR [NODES [CPUS]] | stop DIR" ;;
esac
