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

// Frames over a socket: a 4-byte big-endian length, then that many bytes.
//
// A warm sandboxed Python process that serves one job at a time.

namespace tritonrl {

// The bytes of one frame. InvalidArgument above `max_bytes`.
absl::StatusOr<std::string> EncodeFrame(absl::string_view payload, size_t max_bytes);

// Cuts a byte stream into frames.
class FrameReader {
 public:
  explicit FrameReader(size_t max_bytes) : max_bytes_(max_bytes) {}

  void Add(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }

  // The next whole frame, nothing when more bytes are needed, DataLoss when the length is above
  // the maximum (the stream is then of no use any more).
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  size_t max_bytes_;
  std::string buffer_;
};

// How to start a worker; equal for all of a pool.
struct WorkerConfig {
  SandboxSpec sandbox;
  std::vector<std::string> command;  // the Python program, without the arguments Start adds
  std::string runner = "runner";     // module with run_job and, if it has one, warm_up
  CgroupLimits cgroup;               // for worker and job together
  bool limit_data = true;            // RLIMIT_DATA on jobs (not with CUDA)
  bool seccomp = true;               // jobs get a system call filter; false: this kernel has none
  absl::Duration start_timeout = absl::Seconds(120);
  absl::Duration kill_grace = absl::Seconds(5);  // for the worker to report a killed job
  int stop_fd = -1;                              // readable when the pool stops; ends every wait
};

// Not thread safe. The thread that started a worker must outlive it: the kernel kills the worker
// when that thread ends.
class Worker {
 public:
  // Starts the process and waits until it has imported everything. `name` tells the cgroups of
  // several workers apart. Errors hold the end of what the process said on stderr.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(const WorkerConfig& config,
                                                       const std::string& name);
  ~Worker();  // kills everything

  // Runs one job (a JSON object as text) under `limits`, of which every field is set. Its process
  // holds `fds` under the numbers that its field "fds" tells it by name. Returns within the
  // wall-clock limit, the deadline and kill_grace, or after it was cancelled. After kWorkerDied or
  // kStopped, or when alive() is false, the worker is of no more use.
  JobReport Run(absl::string_view job_json, const ExecLimits& limits, absl::Time deadline,
                const std::vector<JobFd>& fds = {}, const JobEnds& ends = {});

  bool alive() const { return alive_; }
  std::string limits_description() const { return cgroup_.description(); }
  double start_seconds() const { return start_seconds_; }

 private:
  enum class WaitResult { kFrame, kDeadline, kDied, kStopped, kCancelled };

  Worker(const WorkerConfig& config, Subprocess process, WorkerCgroup cgroup, int socket);

  // Waits for a frame, reading stderr meanwhile, until `cancel_fd` (if any) is readable.
  WaitResult WaitFrame(absl::Time deadline, std::string* frame, int cancel_fd = -1);
  // Waits for the report of a job that began at `begun`, until `deadline` or its limit, which is
  // put into `limit` and moves on while the job waits for others.
  WaitResult WaitReport(absl::Time begun, const ExecLimits& limits, absl::Time deadline,
                        const JobEnds& ends, std::string* frame, absl::Time* limit);
  // Reads what is there; false at the end of the stream.
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
