#ifndef TRITONRL_TRAINER_CHECKPOINT_OPTIMIZER_STATE_H_
#define TRITONRL_TRAINER_CHECKPOINT_OPTIMIZER_STATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parallel/shard_plan.h"
#include "trainer/learner/policy.h"
#include "trainer/optimizer/adamw.h"

// The optimizer's state in files, one for each rank, which any number of ranks can read.
//
// A file holds its rank's shard (shard_plan.h) of each tensor, fp32, without a header: [master
// weights, if the model's weights are not fp32] first moment, second moment.

namespace tritonrl {

// A copy of a tensor in CPU memory that is reused for the next copy. It is pinned if the source is
// on a GPU, so that the copy runs at the speed of the bus.
class CpuCopy {
 public:
  // A power of two: pinned memory is given out in these, so that one large chunk could waste half.
  static constexpr int64_t kChunkBytes = int64_t{256} << 20;

  explicit CpuCopy(int64_t chunk_bytes = kChunkBytes) : chunk_bytes_(chunk_bytes) {}

  // Copies a contiguous tensor; the copy is complete on return. Memory is allocated only when type,
  // size or device differ from the last time. Out of memory throws c10::Error or std::bad_alloc.
  void Take(const at::Tensor& source);

  // The last copy's elements in order, each chunk [n] of the source's type.
  const std::vector<at::Tensor>& chunks() const { return chunks_; }
  // Writes them into `target`, contiguous on the CPU, of the source's type and size.
  void CopyTo(const at::Tensor& target) const;

 private:
  bool Fits(const at::Tensor& source) const;

  int64_t chunk_bytes_;
  int64_t elements_ = 0;
  bool pinned_ = false;
  std::vector<at::Tensor> chunks_;
};

// Name of a rank's file: optimizer.bin for one rank, optimizer_003_of_008.bin for several.
std::string OptimizerFileName(int rank, int ranks);

// The tensors of this rank's shard, in the order of the file.
std::vector<at::Tensor> OptimizerStateTensors(const AdamW& optimizer);

// Writes a rank's file from copies of OptimizerStateTensors, and syncs it.
absl::Status WriteOptimizerState(const std::string& path, const std::vector<CpuCopy>& tensors);

// Reads this rank's shard from the files in `dir`, which ranks with the plan `saved` wrote. Copies
// to a GPU through pinned memory for four pieces of a bucket, which torch keeps for the next
// copies. fp32 weights must have been loaded before, as the master copy is made from them. Errors:
// DataLoss names a file that is missing or of another size; a plan for another model.
absl::Status ReadOptimizerState(const std::string& dir, const ShardPlan& saved, AdamW* optimizer);

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

#endif  // TRITONRL_TRAINER_CHECKPOINT_OPTIMIZER_STATE_H_
