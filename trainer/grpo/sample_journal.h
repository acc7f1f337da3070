#ifndef TRITONRL_TRAINER_GRPO_SAMPLE_JOURNAL_H_
#define TRITONRL_TRAINER_GRPO_SAMPLE_JOURNAL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/disk_room.h"
#include "base/jsonl.h"
#include "rollout/engine/engine.h"

namespace tritonrl {

// Keeps each sample as soon as it is generated, so that a run that ended goes on without generating
// it again. A JSONL file: key, run, finish_reason and tokens of each sample.
//
// Room on the disk is reserved before a sample is generated: for its line, and for its verdict in
// the verifier's journal. Not thread-safe.
class SampleJournal {
 public:
  // `run` names all that the samples depend on beside their keys: model, prompts, sampling, seed.
  // Lines of other runs stay in the file and are not used. `verdicts` is the verifier's journal, or
  // "". FailedPrecondition: another process uses the file; DataLoss names a damaged line.
  static absl::StatusOr<std::unique_ptr<SampleJournal>> Open(const std::string& path,
                                                             const std::string& run,
                                                             const std::string& verdicts);

  // The stored sample, without log-probabilities, or null.
  const Sample* Find(const std::string& key) const;

  // Reserves room for `samples` samples of at most `max_tokens` tokens, and for the verdicts of
  // those and of `unverified` others, besides all that was reserved before and has not been added.
  // ResourceExhausted in one sentence: the disk is full; nothing is reserved then.
  absl::Status Reserve(int samples, int max_tokens, int unverified);

  // Appends a sample for which room was reserved by Reserve with the same `max_tokens`.
  absl::Status Add(const std::string& key, const Sample& sample, int max_tokens);

 private:
  SampleJournal(std::string run, const std::string& verdicts)
      : run_(std::move(run)), verdict_room_(verdicts), has_verdicts_(!verdicts.empty()) {}

  const std::string run_;
  DiskRoom verdict_room_;
  const bool has_verdicts_;
  std::unique_ptr<JsonlJournal> file_;
  std::map<std::string, Sample> samples_;
  int64_t reserved_ = 0;  // bytes, for samples that are being generated
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_SAMPLE_JOURNAL_H_
