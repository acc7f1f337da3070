#include "model/weight_shard.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {

absl::StatusOr<ModelConfig> ShardConfig(const ModelConfig& config, int ranks) {
  if (ranks < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model cannot be spread over ", ranks, " ranks"));
  }
  ModelConfig part = config;
  const std::pair<const char*, int64_t*> divided[] = {
      {"num_attention_heads", &part.num_heads},
      {"num_key_value_heads", &part.num_kv_heads},
      {"intermediate_size", &part.intermediate_size}};
  for (const auto& [field, size] : divided) {
    if (*size % ranks != 0) {
      return absl::InvalidArgumentError(absl::StrCat("the model cannot be spread over ", ranks,
                                                     " ranks: its ", field, " is ", *size,
                                                     ", which ", ranks, " does not divide"));
    }
    *size /= ranks;
  }
  return part;
}

ShardSlice SliceOf(const ParameterInfo& whole, const ParameterInfo& part, int rank) {
  ShardSlice slice;
  slice.width = whole.shape.back();
  slice.columns = part.shape.back();
  slice.column = slice.columns < slice.width ? rank * slice.columns : 0;
  if (whole.shape.size() > 1) {
    slice.rows = part.shape[0];
    slice.row = slice.rows < whole.shape[0] ? rank * slice.rows : 0;
  }
  return slice;
}

absl::StatusOr<std::shared_ptr<Weights>> TakeShard(const Weights& whole, const WeightShard& shard) {
  ASSIGN_OR_RETURN(const ModelConfig config, ShardConfig(whole.config(), shard.ranks));
  auto weights = std::make_shared<Weights>(config, whole.device(), whole.dtype());
  const std::vector<ParameterInfo>& parameters = weights->layout().parameters;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const ParameterInfo& from = whole.layout().parameters[p];
    const ShardSlice slice = SliceOf(from, parameters[p], shard.rank);
    weights->Get(from.name)
        .view({slice.rows, slice.columns})
        .copy_(whole.Get(from.name)
                   .view({-1, slice.width})
                   .narrow(0, slice.row, slice.rows)
                   .narrow(1, slice.column, slice.columns));
  }
  return weights;
}

}  // namespace tritonrl
