// Draws samples from the engine and hands each to the verifier the moment it ends, so that
// checking overlaps generation.
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
#include "absl/time/time.h"
#include "model/tokenizer/tokenizer.h"
#include "rollout/engine.h"
#include "trainer/grpo/fault_journal.h"
#include "trainer/grpo/sample_batch.h"
#include "verify/verifier.h"

namespace tritonrl {

// Used by one thread. Several batches may be under way at the same time.
class SampleRunner {
 public:
  // All pointers must outlive the runner. `engine`: null where all batches are without groups.
  SampleRunner(Engine* engine, Verifier* verifier, const Tokenizer* tokenizer,
               FaultJournal* faults);
  ~SampleRunner();

  // Begins a batch: makes room for `samples_per_group` samples in each group and submits them.
  absl::Status Start(std::shared_ptr<SampleBatch> batch, int samples_per_group);

  enum class Stage { kGenerated, kJudged };
  // Works on all batches until `batch` has reached the stage. `keep_going` is called several times
  // a second; Cancelled when it returns false. DeadlineExceeded says how many samples are missing.
  absl::Status Wait(const std::shared_ptr<SampleBatch>& batch, Stage stage, absl::Time deadline,
                    const std::function<bool()>& keep_going);

  // Ends everything under way; samples and verdicts still to come are dropped.
  void Abandon();

  // The verifier's name for one sample.
  static std::string SampleName(const SampleBatch& batch, const SampleGroup& group, int index);

 private:
  struct Mailbox;  // verdicts on their way from the verifier's threads

  absl::Status SubmitPending();
  absl::Status TakeSample(absl::Time deadline);
  void Judge(const std::shared_ptr<SampleBatch>& batch, int group, int index);
  void TakeVerdicts(absl::Duration wait);

  Engine* engine_;
  Verifier* verifier_;
  const Tokenizer* tokenizer_;
  FaultJournal* faults_;
  TokenSplitIds split_ids_;
  std::shared_ptr<Mailbox> mailbox_;
  uint64_t next_request_ = 1;
  // Requests not yet accepted by the engine, and those it works on: request -> (batch, group).
  std::deque<GenerateRequest> pending_;
  std::map<uint64_t, std::pair<std::shared_ptr<SampleBatch>, int>> requests_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_SAMPLE_RUNNER_H_
