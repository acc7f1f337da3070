// Which samples of a run were left out because something of ours failed. A run that is killed and
// resumed must leave out the same ones, or its groups, and with them its weights, would differ.
#ifndef TRITONRL_TRAINER_GRPO_FAULT_JOURNAL_H_
#define TRITONRL_TRAINER_GRPO_FAULT_JOURNAL_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verify/verdict.pb.h"

namespace tritonrl {

class FaultJournal {
 public:
  // Reads the file if it exists. A torn last line is dropped. An empty path: kept in memory only.
  static absl::StatusOr<std::unique_ptr<FaultJournal>> Open(const std::string& path);

  // `key` names the sample, e.g. "step 12/3/level1/07_softmax/5". Kept in memory until Commit.
  void Add(const std::string& key, const FaultOfOurs& fault);
  // Writes what was added since the last Commit. Called once the step has been learned from: a step
  // that was abandoned is judged anew.
  absl::Status Commit();
  // The fault recorded for a sample, or null.
  const FaultOfOurs* Find(const std::string& key) const;

 private:
  explicit FaultJournal(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::map<std::string, FaultOfOurs> faults_;
  std::string pending_;  // lines not yet written
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_FAULT_JOURNAL_H_
