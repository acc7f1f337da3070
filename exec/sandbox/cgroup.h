// Limits of memory, processes and cores of one worker by cgroup, version 1 or 2, whichever is
// writable.
#ifndef TRITONRL_EXEC_SANDBOX_CGROUP_H_
#define TRITONRL_EXEC_SANDBOX_CGROUP_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tritonrl {

struct CgroupLimits {
  // 0: not limited.
  int64_t memory_bytes = 0;
  int64_t processes = 0;  // threads count
  // At the same time, on average over a tenth of a second; at most what the group above has.
  double cores = 0;
};

// The groups of one worker. Everything is best effort: what the host does not allow is left out,
// and description() says what is in force.
class WorkerCgroup {
 public:
  // Makes groups named after this process and `name` below the group this process is in (v2 also
  // tries the root). Groups of supervisors that died are removed first.
  static WorkerCgroup Create(const std::string& name, const CgroupLimits& limits);

  WorkerCgroup() = default;
  WorkerCgroup(WorkerCgroup&& other) noexcept;
  WorkerCgroup& operator=(WorkerCgroup&& other) noexcept;
  // Kills what is left inside and removes the groups.
  ~WorkerCgroup();

  // Files that a process writes its pid to in order to join; empty when nothing is in force.
  std::vector<std::string> procs_files() const;

  bool limits_memory() const { return !memory_folder_.empty(); }
  bool limits_processes() const { return !pids_folder_.empty(); }
  bool limits_cores() const { return !cpu_folder_.empty(); }
  // "cgroup v1 memory+pids+cpu", "cgroup v2 memory", "no cgroup".
  std::string description() const;

  // Processes that the kernel killed here because the memory was full, so far.
  int64_t OomKills() const;
  // Forks refused here because of the process limit, so far.
  int64_t RefusedForks() const;
  // Tenths of a second in which the limit of cores stopped what runs here, so far.
  int64_t Throttled() const;
  // SIGKILL to everything inside, repeated until nothing is left or a second has passed.
  void KillAll() const;

 private:
  void LimitByVersion1(const std::string& name, const CgroupLimits& limits);
  void LimitByVersion2(const std::string& name, const CgroupLimits& limits);
  std::vector<std::string> Folders() const;

  int version_ = 0;            // 0: nothing is in force
  std::string memory_folder_;  // in version 2 the three that are in force are equal
  std::string pids_folder_;
  std::string cpu_folder_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_CGROUP_H_
