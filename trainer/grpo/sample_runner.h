#ifndef TRITONRL_TRAINER_GRPO_SAMPLE_RUNNER_H_
#define TRITONRL_TRAINER_GRPO_SAMPLE_RUNNER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/jsonl.h"
#include "model/tokenizer/tokenizer.h"
#include "rollout/engine/engine.h"
#include "trainer/grpo/sample_batch.h"
#include "verify/pipeline/verifier.h"
#include "verify/verdict/verdict.pb.h"

// Draws samples from the engine and passes each to the verifier when it ends, so that verification
// overlaps generation.

namespace tritonrl {

// The samples that a run left out because of an infrastructure error. A run that is killed and
// resumed must leave out the same samples. Otherwise its groups, and so its weights, would differ.
class InfraErrorJournal {
 public:
  // Reads the file if it exists. DataLoss names a damaged line. An empty path keeps the errors in
  // memory only.
  static absl::StatusOr<std::unique_ptr<InfraErrorJournal>> Open(const std::string& path);

  // The verdict's key names the sample, e.g. "step 12/3/level1/07_softmax/5". Key, task and outcome
  // are kept, in memory until Commit.
  void Add(const Verdict& verdict);
  // Writes what was added since the last Commit. Called once the step has been learned from: a step
  // that was abandoned is verified anew.
  absl::Status Commit();
  // The verdict recorded for a sample, or null.
  const Verdict* Find(const std::string& key) const;

 private:
  InfraErrorJournal() = default;
  std::unique_ptr<JsonlJournal> journal_;  // null: memory only
  std::map<std::string, Verdict> verdicts_;
  std::vector<std::string> pending_;  // lines not yet written
};

// Used by one thread. Several batches may be in flight.
class SampleRunner {
 public:
  // All pointers must outlive the runner. `engine` may be null if no batch has groups.
  SampleRunner(Engine* engine, Verifier* verifier, const Tokenizer* tokenizer,
               InfraErrorJournal* infra_errors);
  ~SampleRunner();

  // Begins a batch: makes room for `samples_per_group` samples in each group and submits them.
  absl::Status Start(std::shared_ptr<SampleBatch> batch, int samples_per_group);

  enum class Stage { kGenerated, kVerified };
  // Works on all batches until `batch` has reached the stage. `keep_going` is called several times
  // a second; Cancelled when it returns false. DeadlineExceeded says how many samples are missing.
  absl::Status Wait(const std::shared_ptr<SampleBatch>& batch, Stage stage, absl::Time deadline,
                    const std::function<bool()>& keep_going);

  // Cancels all batches in flight. Samples and verdicts that still arrive are dropped.
  void Abandon();

  // The verifier's name for one sample.
  static std::string SampleName(const SampleBatch& batch, const SampleGroup& group, int index);

 private:
  struct Mailbox;  // verdicts on their way from the verifier's threads

  absl::Status SubmitPending();
  absl::Status TakeSample(absl::Time deadline);
  void Verify(const std::shared_ptr<SampleBatch>& batch, int group, int index);
  void TakeVerdicts(absl::Duration wait);

  Engine* engine_;
  Verifier* verifier_;
  const Tokenizer* tokenizer_;
  InfraErrorJournal* infra_errors_;
  TokenSplitIds split_ids_;
  std::shared_ptr<Mailbox> mailbox_;
  uint64_t next_request_ = 1;
  // Requests not yet accepted by the engine, and those it works on: request -> (batch, group).
  std::deque<GenerateRequest> pending_;
  std::map<uint64_t, std::pair<std::shared_ptr<SampleBatch>, int>> requests_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_SAMPLE_RUNNER_H_
