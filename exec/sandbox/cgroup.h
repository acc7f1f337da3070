// Cgroups that limit the memory, processes and cores of one worker. Uses version 1 or 2, whichever
// is writable.
#ifndef TRITONRL_EXEC_SANDBOX_CGROUP_H_
#define TRITONRL_EXEC_SANDBOX_CGROUP_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tritonrl {

// In every field 0 means no limit.
struct CgroupLimits {
  int64_t memory_bytes = 0;
  int64_t processes = 0;  // processes and threads together
  // Cores in use at once, averaged over 0.1 s. The parent group's own limit still holds.
  double cores = 0;
};

// The groups of one worker. All limits are best effort: a limit that the host does not support is
// skipped, and description() names the limits in force.
class WorkerCgroup {
 public:
  // Makes groups named after this process and `name`, below the group of this process (version 2
  // also tries the parent of that group, then the root). First removes the groups of dead
  // supervisors.
  static WorkerCgroup Create(const std::string& name, const CgroupLimits& limits);

  WorkerCgroup() = default;
  WorkerCgroup(WorkerCgroup&& other) noexcept;
  WorkerCgroup& operator=(WorkerCgroup&& other) noexcept;
  // Kills all processes in the groups and removes the groups.
  ~WorkerCgroup();

  // The cgroup.procs files: a process joins by writing its pid to each. Empty without any limit.
  std::vector<std::string> procs_files() const;

  bool limits_memory() const { return !memory_folder_.empty(); }
  bool limits_processes() const { return !pids_folder_.empty(); }
  bool limits_cores() const { return !cpu_folder_.empty(); }
  // For example "cgroup v1 memory+pids+cpu", "cgroup v2 memory", "no cgroup". "core share": without
  // a limit of its own, the group shares the parent group's cores evenly with its siblings.
  std::string description() const;

  // Counters since the groups were made; 0 where the limit is not in force.
  // Processes of the groups that the kernel killed because the memory was full.
  int64_t OomKills() const;
  // Forks that the kernel refused because of the process limit.
  int64_t RefusedForks() const;
  // Periods of 0.1 s in which the core limit stopped the groups' processes.
  int64_t Throttled() const;
  // Sends SIGKILL to all processes in the groups, repeatedly, until none is left or a second has
  // passed.
  void KillAll() const;

 private:
  void LimitByVersion1(const std::string& name, const CgroupLimits& limits);
  void LimitByVersion2(const std::string& name, const CgroupLimits& limits);
  std::vector<std::string> Folders() const;

  int version_ = 0;  // 0: no limit is in force
  // Folder of the group that holds each limit; empty: not in force. Version 2 has one folder for
  // all three.
  std::string memory_folder_;
  std::string pids_folder_;
  std::string cpu_folder_;
  std::string share_folder_;  // version 1: a cpu group whose limit the kernel refused
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_CGROUP_H_
