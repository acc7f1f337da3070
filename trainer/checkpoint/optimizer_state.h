#ifndef TRITONRL_TRAINER_CHECKPOINT_OPTIMIZER_STATE_H_
#define TRITONRL_TRAINER_CHECKPOINT_OPTIMIZER_STATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parallel/zero_shard_plan.h"
#include "trainer/learner/policy.h"
#include "trainer/optimizer/adamw.h"

// Stores the optimizer's state in one file per rank, readable by any number of ranks.
//
// A file holds its rank's shard (zero_shard_plan.h) of each tensor, fp32, without a header: [master
// weights, if the model's weights are not fp32] first moment, second moment.

namespace tritonrl {

// A copy of a tensor in CPU memory, whose memory is reused for the next copy. It is pinned if the
// source is on a GPU, so that the copy runs at the speed of the bus.
class CpuCopy {
 public:
  // The pinned-memory allocator rounds up to powers of two, so that a single large chunk could
  // waste half of its memory.
  static constexpr int64_t kChunkBytes = int64_t{256} << 20;

  explicit CpuCopy(int64_t chunk_bytes = kChunkBytes) : chunk_bytes_(chunk_bytes) {}

  // Copies a contiguous tensor; the copy is complete on return. Memory is allocated only if type,
  // size or device differ from the last call. Out of memory throws c10::Error or std::bad_alloc.
  void Take(const at::Tensor& source);

  // The last copy's elements in order, each chunk [n] of the source's type.
  const std::vector<at::Tensor>& chunks() const { return chunks_; }
  // Copies the chunks into `target`, a contiguous CPU tensor of the source's type and size.
  void CopyTo(const at::Tensor& target) const;

 private:
  bool Fits(const at::Tensor& source) const;

  int64_t chunk_bytes_;
  int64_t elements_ = 0;
  bool pinned_ = false;
  std::vector<at::Tensor> chunks_;
};

// File name of a rank's state: optimizer.bin for one rank, optimizer_003_of_008.bin for several.
std::string OptimizerFileName(int rank, int ranks);

// The tensors of this rank's shard in file order.
std::vector<at::Tensor> OptimizerStateTensors(const AdamW& optimizer);

// Writes a rank's file from copies of OptimizerStateTensors, and syncs it.
absl::Status WriteOptimizerState(const std::string& path, const std::vector<CpuCopy>& tensors);

// Reads this rank's shard from the files in `dir`, which ranks with the plan `saved` wrote. Copies
// to a GPU go through pinned memory for four shards of a bucket, which torch's allocator keeps.
// fp32 weights must be loaded before this call, which makes the master copy from them. DataLoss
// names a file that is missing or has another size, or says that the plan is of another model.
absl::Status ReadOptimizerState(const std::string& dir, const ZeroShardPlan& saved,
                                AdamW* optimizer);

// The state of a run besides weights and optimizer, stored in state.json.
struct TrainingState {
  std::string program;  // "sft", "grpo_hrd": a checkpoint of another program is refused
  int64_t step = 0;     // completed steps
  // Every random draw of a run is keyed by (seed, step, ...), so seed and step are the whole state
  // of the random numbers. A checkpoint with another seed is refused.
  uint64_t seed = 0;
  int consecutive_skipped = 0;               // non-finite gradients in a row
  std::map<std::string, std::string> extra;  // further state of the program
};

// A copy of the state in CPU memory, from which a thread writes the files of one rank.
class CheckpointSnapshot {
 public:
  // Copies this rank's shard of the optimizer's state; rank 0 also copies `state` and the weights.
  // The memory is kept for the next call. Error: out of memory.
  absl::Status Take(const TrainingState& state, const Policy& policy, const AdamW& optimizer);

  // Writes and syncs the files of the copied state into `dir`; returns their sizes and checksums
  // (DescribeFiles). Can run on any thread, as it uses only the copy and the tokenizer's files in
  // the policy's folder. Rank 0 temporarily needs memory for one more copy of the weights.
  absl::StatusOr<std::string> Write(const std::string& dir) const;

 private:
  absl::Status WriteModel(const std::string& dir) const;

  int rank_ = 0;
  std::string optimizer_file_;
  std::vector<CpuCopy> optimizer_;
  // Set on rank 0 only:
  std::string state_;  // the text of state.json
  Policy policy_;      // without weights
  at::ScalarType dtype_ = at::kFloat;
  CpuCopy weights_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CHECKPOINT_OPTIMIZER_STATE_H_
