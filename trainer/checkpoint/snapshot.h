// What one rank writes of a checkpoint, copied into CPU memory so that training goes on while it
// is written.
#ifndef TRITONRL_TRAINER_CHECKPOINT_SNAPSHOT_H_
#define TRITONRL_TRAINER_CHECKPOINT_SNAPSHOT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/checkpoint/optimizer_state.h"
#include "trainer/learner/policy.h"
#include "trainer/optimizer/adamw.h"

namespace tritonrl {

struct TrainingState {
  std::string program;  // "sft", "grpo_hrd": a checkpoint of another program is refused
  int64_t step = 0;     // steps done
  // Every draw of a run is keyed by (seed, step, ...), so this pair is the whole state of the
  // random numbers. A checkpoint of another seed is refused.
  uint64_t seed = 0;
  int consecutive_skipped = 0;               // updates left out for a gradient that was not finite
  std::map<std::string, std::string> extra;  // what else the program must keep
};

class CheckpointSnapshot {
 public:
  // Copies this rank's share of the optimizer's state; rank 0 also `state` and the weights. The
  // memory is kept for the next time. Error: out of memory.
  absl::Status Take(const TrainingState& state, const Policy& policy, const AdamW& optimizer);

  // Writes and syncs the files of what was taken into `dir`; gives their sizes and checksums
  // (DescribeFiles). From any thread, as it uses nothing but the copy and the tokenizer's files in
  // the policy's folder. Rank 0 needs memory for the weights once more meanwhile.
  absl::StatusOr<std::string> Write(const std::string& dir) const;

 private:
  absl::Status WriteModel(const std::string& dir) const;

  int rank_ = 0;
  std::string optimizer_file_;
  std::vector<CpuCopy> optimizer_;
  // Of rank 0:
  std::string state_;  // the text of state.json
  Policy policy_;      // without weights
  at::ScalarType dtype_ = at::kFloat;
  CpuCopy weights_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CHECKPOINT_SNAPSHOT_H_
