// A readable copy of the Python sources that workers import.
#ifndef TRITONRL_EXEC_WORKERS_STAGED_SOURCES_H_
#define TRITONRL_EXEC_WORKERS_STAGED_SOURCES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

// The sources may lie in a home folder closed to others, and workers run as another user. The copy
// goes away with the object; what a killed process left is removed by the next one.
class StagedSources {
 public:
  // Copies the .py files of each folder (and of folders below) to <path>/0, <path>/1, ...
  static absl::StatusOr<std::unique_ptr<StagedSources>> Create(
      const std::vector<std::string>& folders);
  ~StagedSources();
  StagedSources(const StagedSources&) = delete;
  StagedSources& operator=(const StagedSources&) = delete;

  const std::string& path() const { return path_; }
  // Six letters that tell this copy from all others on this machine.
  std::string id() const { return path_.substr(path_.size() - 6); }

 private:
  StagedSources(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;  // locked while this object lives
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_STAGED_SOURCES_H_
