// The run folder of a training run, locked against a second process.
#ifndef TRITONRL_BASE_RUN_DIR_H_
#define TRITONRL_BASE_RUN_DIR_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace tritonrl {

// A locked run folder: config.textproto, versions.json, metrics.jsonl, report.html, samples/,
// checkpoints/, tensorboard/, .lock.
class RunDir {
 public:
  // Creates missing folders and takes the lock. The kernel releases the lock when the object is
  // destroyed or the process ends, even by kill -9. AlreadyExists: the folder holds a run and
  // `resume` is false. FailedPrecondition names the process that holds the lock.
  static absl::StatusOr<std::unique_ptr<RunDir>> Open(const std::string& path, bool resume);

  bool resumed() const { return resumed_; }  // Open found a config.textproto
  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.textproto"; }
  std::string versions_path() const { return path_ + "/versions.json"; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }

  // Appends an object to the list in versions.json: version, program, time, host, kernel,
  // processors and compiler, plus the caller's `entries` ("torch", "triton", "device", ...).
  absl::Status WriteVersions(const std::map<std::string, std::string>& entries);

 private:
  RunDir(std::string path, bool resumed, int lock_fd)
      : path_(std::move(path)), resumed_(resumed), lock_fd_(lock_fd) {}
  std::string path_;
  bool resumed_;
  const ScopedFd lock_fd_;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RUN_DIR_H_
