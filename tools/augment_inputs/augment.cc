#include "tools/augment_inputs/augment.h"

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "tools/augment_inputs/family.h"
#include "tools/augment_inputs/family_checker.h"
#include "tools/augment_inputs/variant_files.h"
#include "tools/augment_inputs/variant_requests.h"

namespace tritonrl {

namespace {

// Refuses a task whose own file would be a variant of another task, or whose request would have the
// key of another task's later one.
absl::Status CheckNames(const AugmentOptions& options) {
  absl::flat_hash_set<std::string> ids;
  for (const Task& task : options.tasks) ids.insert(task.id);
  for (const Task& task : options.tasks) {
    for (int v = 1; options.with_originals && v <= kMostVariants; ++v) {
      const std::string name = VariantName(task.id, v);
      if (!ids.contains(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "with --with_originals the task ", name, " would have the name of a variant of the task ",
          task.id, "; rename one, or leave out --with_originals"));
    }
    for (int round = 2; round <= options.rounds; ++round) {
      const std::string key = RequestKey(task.id, round);
      if (!ids.contains(key)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("with --rounds the task ", key, " would have the name of request ", round,
                       " for the task ", task.id, "; rename one, or leave out --rounds"));
    }
  }
  return absl::OkStatus();
}

class Augmenter {
 public:
  Augmenter(const AugmentOptions& options, EndpointClient* client)
      : options_(options), client_(client), requests_(options, client) {}

  absl::StatusOr<AugmentSummary> Run() {
    RETURN_IF_ERROR(CheckNames(options_));
    summary_.tasks = static_cast<int64_t>(options_.tasks.size());
    summary_.wanted = options_.variants;
    for (const Task& task : options_.tasks) families_.emplace_back().task = &task;
    for (int round = 1; round <= options_.rounds; ++round) {
      const std::vector<Family*> open = Open(round);
      if (open.empty()) break;
      RETURN_IF_ERROR(requests_.Ask(round, open, &summary_));
      summary_.counts = client_->counts();
      if (summary_.interrupted) return summary_;
      const std::vector<Family*> answered = Answered(round);
      if (round == 1 && answered.empty()) RETURN_IF_ERROR(summary_.ended);
      RETURN_IF_ERROR(CheckAll(answered));
      if (summary_.interrupted) return summary_;
    }
    RETURN_IF_ERROR(WriteVariants(options_, families_, &summary_));
    return summary_;
  }

 private:
  // The tasks to ask in this round: those that have fewer variants than wanted after the rounds
  // before. A lost worker is no reason to pay for another response.
  std::vector<Family*> Open(int round) {
    std::vector<Family*> open;
    for (Family& family : families_) {
      if (family.rounds == round - 1 && !family.broken() && !family.lost &&
          family.kept() < options_.variants) {
        open.push_back(&family);
      }
    }
    return open;
  }

  std::vector<Family*> Answered(int round) {
    std::vector<Family*> answered;
    for (Family& family : families_) {
      if (family.rounds == round) answered.push_back(&family);
    }
    return answered;
  }

  absl::Status CheckAll(const std::vector<Family*>& families) {
    if (families.empty()) return absl::OkStatus();
    if (checker_ == nullptr) {
      ASSIGN_OR_RETURN(checker_,
                       FamilyChecker::Start(options_.check, options_.out + "/checks.jsonl"));
    }
    const int64_t total = static_cast<int64_t>(families.size());
    Progress bar({.label = "checks", .total = total, .out = options_.messages});
    absl::Mutex mutex;
    int64_t done = 0;
    const auto check = [&](int, int64_t i) -> absl::Status {
      RETURN_IF_ERROR(checker_->Check(options_.variants, options_.stop, families[i]));
      absl::MutexLock lock(&mutex);
      bar.Tick(++done, "");
      return absl::OkStatus();
    };
    const absl::Status checked = ParallelFor(checker_->workers(), total, check);
    summary_.interrupted = absl::IsCancelled(checked);
    return summary_.interrupted ? absl::OkStatus() : checked;
  }

  const AugmentOptions& options_;
  EndpointClient* const client_;
  VariantRequests requests_;
  std::unique_ptr<FamilyChecker> checker_;  // from the first check on
  AugmentSummary summary_;
  std::vector<Family> families_;  // of all tasks, in their order
};

}  // namespace

absl::StatusOr<AugmentSummary> AugmentInputs(const AugmentOptions& options,
                                             EndpointClient* client) {
  Augmenter augmenter(options, client);
  return augmenter.Run();
}

}  // namespace tritonrl
