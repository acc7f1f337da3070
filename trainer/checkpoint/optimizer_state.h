#ifndef TRITONRL_TRAINER_CHECKPOINT_OPTIMIZER_STATE_H_
#define TRITONRL_TRAINER_CHECKPOINT_OPTIMIZER_STATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "parallel/shard_plan.h"
#include "trainer/optimizer/adamw.h"

// A copy of a tensor in CPU memory that is kept for the next copy: pinned where the source lies on
// a GPU, so that the copy runs at the bus's speed.
//
// The optimizer's state in files, one for each rank, which any number of ranks can read again.
//
// A file holds what its rank keeps (shard_plan.h) of each tensor, fp32, one behind the other
// without a header: [master weights, if the model's are not fp32] first moment, second moment.

namespace tritonrl {

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

// What a rank keeps, in the order of the file.
std::vector<at::Tensor> OptimizerStateTensors(const AdamW& optimizer);

// Writes a rank's file from copies of these, and syncs it.
absl::Status WriteOptimizerState(const std::string& path, const std::vector<CpuCopy>& tensors);

// Reads what this rank keeps from the files in `dir`, which were written by ranks with the plan
// `saved`. Error: a file that is missing or of another size (DataLoss, named), a plan for another
// model. Onto a GPU through pinned memory for four pieces of a bucket, which torch keeps for the
// next copies. With fp32 weights the master is taken from them: they must have been loaded before.
absl::Status ReadOptimizerState(const std::string& dir, const ShardPlan& saved, AdamW* optimizer);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CHECKPOINT_OPTIMIZER_STATE_H_
