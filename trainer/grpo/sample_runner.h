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
#include "tasks/response.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/grpo/sample_journal.h"
#include "verify/pipeline/verifier.h"
#include "verify/verdict/verdict.pb.h"

// Submits prompts to the engine and passes each finished sample to the verifier, so that
// verification overlaps generation.

namespace tritonrl {

// A journal of the samples that a run left out because of an infrastructure error. A resumed run
// must leave out the same samples; otherwise its groups, and so its weights, would differ.
class InfraErrorJournal {
 public:
  // Reads the file if it exists. DataLoss names an invalid line. An empty path keeps the errors in
  // memory only.
  static absl::StatusOr<std::unique_ptr<InfraErrorJournal>> Open(const std::string& path);

  // Keeps key, task and outcome of an infrastructure error, in memory until Commit. The key names
  // the sample, e.g. "step 12/3/level1/07_softmax/5".
  void Add(const Verdict& verdict);
  // Writes the entries added since the last Commit. Called after the step's update, because a
  // resumed run verifies the samples of an abandoned step again.
  absl::Status Commit();
  // The verdict recorded for a sample, or null.
  const Verdict* Find(const std::string& key) const;

 private:
  InfraErrorJournal() = default;
  std::unique_ptr<JsonlJournal> journal_;  // null: memory only
  std::map<std::string, Verdict> verdicts_;
  std::vector<std::string> pending_;  // lines that are not written yet
};

// Not thread-safe. Several batches may be in flight.
class SampleRunner {
 public:
  // All pointers must outlive the runner. `engine` may be null if no batch has groups. `style` is
  // how the responses are split into plan and code tokens, and how they are verified.
  SampleRunner(Engine* engine, Verifier* verifier, const Tokenizer* tokenizer,
               const ResponseStyle& style, InfraErrorJournal* infra_errors);
  ~SampleRunner();

  // Takes samples that `journal` holds from it, and keeps all others in it. Without room on the
  // disk fewer samples are generated at a time; if there is none for a single group, Wait returns
  // that error once all that was generated is verified. Called before Start; outlives the runner.
  void KeepSamples(SampleJournal* journal) { samples_ = journal; }

  // Allocates `samples_per_group` samples in each group of the batch and submits the prompts.
  absl::Status Start(std::shared_ptr<SampleBatch> batch, int samples_per_group);

  enum class Stage { kGenerated, kVerified };
  // Takes samples and verdicts of all batches until `batch` has reached the stage. Calls
  // `keep_going` several times a second; Cancelled if it returns false. DeadlineExceeded gives the
  // number of missing samples.
  absl::Status Wait(const std::shared_ptr<SampleBatch>& batch, Stage stage, absl::Time deadline,
                    const std::function<bool()>& keep_going);

  // Cancels all batches in flight. Samples and verdicts that arrive later are dropped.
  void Abandon();

  // The verifier's name for one sample.
  static std::string SampleName(const SampleBatch& batch, const SampleGroup& group, int index);

 private:
  struct Mailbox;  // verdicts from the verifier's threads

  absl::Status Restore(const std::shared_ptr<SampleBatch>& batch);
  void Request(const std::shared_ptr<SampleBatch>& batch, int group);
  // False if the first pending request has to wait for room on the disk.
  absl::StatusOr<bool> ReserveFirst();
  absl::Status SubmitPending();
  absl::Status TakeSample(absl::Time deadline);
  void Accept(const std::shared_ptr<SampleBatch>& batch, int group, Sample sample);
  void Verify(const std::shared_ptr<SampleBatch>& batch, int group, int index);
  void TakeVerdicts(absl::Duration wait);

  Engine* engine_;
  Verifier* verifier_;
  const Tokenizer* tokenizer_;
  ResponseStyle style_;
  InfraErrorJournal* infra_errors_;
  SampleJournal* samples_ = nullptr;  // null: samples are not kept
  absl::Status room_error_;           // of samples_: nothing more is submitted
  bool reserved_first_ = false;       // room for pending_.front()
  int unverified_ = 0;
  std::shared_ptr<Mailbox> mailbox_;
  uint64_t next_request_ = 1;
  // Requests that the engine has not accepted yet, and all unfinished ones: request -> (batch,
  // group).
  std::deque<GenerateRequest> pending_;
  std::map<uint64_t, std::pair<std::shared_ptr<SampleBatch>, int>> requests_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_SAMPLE_RUNNER_H_
