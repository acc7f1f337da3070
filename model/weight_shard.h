// Which part of each parameter a rank holds when one model is spread over several (tensor
// parallelism; Shoeybi et al., "Megatron-LM", 2019): heads and intermediate columns are divided, so
// that products which read a divided input give partial sums; embedding, norms and head are whole
// on every rank.
#ifndef TRITONRL_MODEL_WEIGHT_SHARD_H_
#define TRITONRL_MODEL_WEIGHT_SHARD_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/weights.h"

namespace tritonrl {

// Rank `rank` of `ranks`; one rank holds everything.
struct WeightShard {
  int rank = 0;
  int ranks = 1;
};

// The shape of what each of so many ranks holds, a model of its own: 1/ranks of the query heads, of
// the key/value heads and of the intermediate size. InvalidArgument: a size that `ranks` does not
// divide, named.
absl::StatusOr<ModelConfig> ShardConfig(const ModelConfig& config, int ranks);

// Rows and columns of a whole parameter; one of a single dimension is one row.
struct ShardSlice {
  int64_t row = 0, rows = 1;
  int64_t column = 0, columns = 0;
  int64_t width = 0;  // columns of the whole parameter
};

// What a rank holds of `whole`, given its shape in the rank's own layout: rows of q, k, v, gate and
// up, columns of o and down, else everything.
ShardSlice SliceOf(const ParameterInfo& whole, const ParameterInfo& part, int rank);

// A copy of a rank's part of weights that are whole, of the same type and on the same device: what
// tests hold reading and drawing of a part against.
// Errors: those of ShardConfig.
absl::StatusOr<std::shared_ptr<Weights>> TakeShard(const Weights& whole, const WeightShard& shard);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHT_SHARD_H_
