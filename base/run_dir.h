// The folder of a training run, locked against a second process.
#ifndef TRITONRL_BASE_RUN_DIR_H_
#define TRITONRL_BASE_RUN_DIR_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace tritonrl {

// Layout: config.textproto, versions.json, metrics.jsonl, report.html, samples/, checkpoints/,
// tensorboard/, .lock.
class RunDir {
 public:
  enum class Mode {
    kCreate,          // must not hold a run yet
    kResume,          // must hold one
    kCreateOrResume,  // either
  };

  // Creates missing folders and takes the lock; the kernel releases it when the object or the
  // process ends, also by kill -9. AlreadyExists: the folder holds a run and mode is kCreate.
  // NotFound: it holds none and mode is kResume. FailedPrecondition names the process that holds
  // the lock.
  static absl::StatusOr<std::unique_ptr<RunDir>> Open(const std::string& path, Mode mode);

  bool resumed() const { return resumed_; }  // a configuration was already there
  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.textproto"; }
  std::string versions_path() const { return path_ + "/versions.json"; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  std::string report_path() const { return path_ + "/report.html"; }
  std::string samples_dir() const { return path_ + "/samples"; }
  std::string checkpoints_dir() const { return path_ + "/checkpoints"; }
  std::string tensorboard_dir() const { return path_ + "/tensorboard"; }

  // Writes the configuration of a new run. For a resumed run: FailedPrecondition names the first
  // line that differs from the stored configuration.
  absl::Status WriteConfig(absl::string_view text_proto);

  // Appends an entry to the list in versions.json: program, host, processors, compiler and time,
  // plus `entries` of the caller ("torch", "triton", "device", ...).
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
