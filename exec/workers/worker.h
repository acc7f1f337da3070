// A warm sandboxed Python process that runs one job at a time, and the frames on its socket: a
// 4-byte big-endian length, then that many bytes.
#ifndef TRITONRL_EXEC_WORKERS_WORKER_H_
#define TRITONRL_EXEC_WORKERS_WORKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/subprocess.h"
#include "exec/sandbox/cgroup.h"
#include "exec/sandbox/sandbox.h"
#include "exec/workers/job.h"

namespace tritonrl {

// Returns `payload` as a frame. InvalidArgument if `payload` is above `max_bytes`.
absl::StatusOr<std::string> EncodeFrame(absl::string_view payload, size_t max_bytes);

// Cuts a byte stream into frames.
class FrameReader {
 public:
  explicit FrameReader(size_t max_bytes) : max_bytes_(max_bytes) {}

  void Add(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }

  // Returns the payload of the next complete frame, or nullopt if more bytes are needed. DataLoss
  // if the length is above the maximum; the stream is then unusable.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  size_t max_bytes_;
  std::string buffer_;
};

// The configuration of a worker; the same for all workers of a pool.
struct WorkerConfig {
  SandboxSpec sandbox;
  std::vector<std::string> command;  // the Python program, without the arguments that Start adds
  std::string runner;                // Python module with run_job and, optionally, warm_up
  CgroupLimits cgroup;               // for worker and job together
  bool limit_data = true;            // RLIMIT_DATA on jobs (not with CUDA)
  bool seccomp = true;               // jobs get a system call filter; false: this kernel has none
  absl::Duration start_timeout = absl::Seconds(120);
  absl::Duration kill_grace = absl::Seconds(5);  // for the worker to kill a job and report it
  int stop_fd = -1;                              // readable when the pool stops; ends every wait
};

// A worker process. Not thread safe. The thread that started a worker must outlive it: the kernel
// kills the worker when that thread ends.
class Worker {
 public:
  // Starts the process and waits until it has imported its modules. `name` distinguishes the
  // cgroups of several workers. Unavailable, with the end of the process's stderr, if it ends or
  // exceeds start_timeout; Cancelled if the pool stops.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(const WorkerConfig& config,
                                                       const std::string& name);
  ~Worker();  // kills the worker and its job

  // Runs one job (a JSON object as text) under `limits`, of which every field is set. The job's
  // process receives `fds`; its field "fds" gives the descriptor number of each name. Returns at
  // most kill_grace after the wall-clock limit, the deadline or a cancellation. A worker whose
  // report is kWorkerDied or kStopped, or whose alive() is false, cannot run another job.
  JobReport Run(absl::string_view job_json, const ExecLimits& limits, absl::Time deadline,
                const std::vector<JobFd>& fds = {}, const JobEnds& ends = {});

  bool alive() const { return alive_; }
  std::string limits_description() const { return cgroup_.description(); }
  double start_seconds() const { return start_seconds_; }

 private:
  enum class WaitResult { kFrame, kDeadline, kDied, kStopped, kCancelled };

  Worker(const WorkerConfig& config, Subprocess process, WorkerCgroup cgroup, int socket);

  // Waits for a frame, the deadline, a stop of the pool, or until `cancel_fd` is readable (-1:
  // none). Reads stderr meanwhile.
  WaitResult WaitFrame(absl::Time deadline, std::string* frame, int cancel_fd = -1);
  // Waits for the report of a job that began at `begun`, at most until `deadline` or the job's
  // wall-clock limit. `limit` receives that limit, which moves while the job waits for other jobs.
  WaitResult WaitReport(absl::Time begun, const ExecLimits& limits, absl::Time deadline,
                        const JobEnds& ends, std::string* frame, absl::Time* limit);
  // Read the available bytes; false at the end of the stream.
  bool ReadSocket();
  bool ReadStderr();
  absl::Status Send(absl::string_view payload, absl::Time deadline,
                    const std::vector<JobFd>& fds = {});
  void Kill();
  JobReport Collect(absl::string_view frame, JobReport report);

  const WorkerConfig config_;
  Subprocess process_;
  WorkerCgroup cgroup_;
  int socket_;
  FrameReader reader_;
  std::string stderr_tail_;
  bool stderr_open_ = true;
  bool alive_ = true;
  int64_t next_id_ = 1;
  double start_seconds_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_WORKER_H_
