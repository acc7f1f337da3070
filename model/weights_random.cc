// Weights::RandomInit and RandomShard: normal numbers keyed by parameter and element, drawn by
// several threads.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "base/random.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/weight_shard.h"
#include "model/weights.h"

namespace tritonrl {
namespace {

constexpr double kInitStd = 0.02;
constexpr int64_t kDrawnAtOnce = int64_t{16} << 20;

// Draws elements of one model's parameters.
class Drawing {
 public:
  Drawing(const ModelConfig& config, uint64_t seed)
      : seed_(seed),
        residual_std_(kInitStd / std::sqrt(2.0 * config.num_layers)),
        threads_(at::get_num_threads()) {}

  // `count` elements of matrix `p` of the whole model, from element `first` on: fp32, on the CPU.
  at::Tensor Draw(size_t p, const ParameterInfo& info, int64_t first, int64_t count) {
    constexpr int64_t kPiece = 1 << 16;
    const bool residual =
        absl::EndsWith(info.name, "o_proj.weight") || absl::EndsWith(info.name, "down_proj.weight");
    const double std = residual ? residual_std_ : kInitStd;
    const uint64_t key = MixKeys({seed_, p});
    at::Tensor values = at::empty({count}, at::kFloat);
    float* data = values.data_ptr<float>();
    for (int64_t begin = 0; begin < count; begin += kPiece) {
      threads_.Schedule([=] {
        Philox random(key);
        random.SkipBlocks(first + begin);
        for (int64_t i = begin; i < std::min(count, begin + kPiece); ++i) {
          data[i] = static_cast<float>(random.Normal() * std);
        }
      });
    }
    threads_.Wait();
    return values;
  }

 private:
  const uint64_t seed_;
  const double residual_std_;
  ThreadPool threads_;
};

}  // namespace

std::shared_ptr<Weights> Weights::RandomInit(const ModelConfig& config, uint64_t seed,
                                             at::Device device, at::ScalarType dtype,
                                             absl::Span<const FlatRange> parts) {
  auto weights = std::make_shared<Weights>(config, device, dtype);
  const std::vector<ParameterInfo>& parameters = weights->layout().parameters;
  const FlatRange whole = {0, weights->layout().flat_size};
  if (parts.empty()) parts = absl::MakeConstSpan(&whole, 1);
  Drawing drawing(config, seed);
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].shape.size() == 1) {
      weights->Get(parameters[p].name).fill_(1.0);
      continue;
    }
    const int64_t offset = parameters[p].offset;
    for (const FlatRange& part : parts) {
      const int64_t end = std::min(part.end, offset + parameters[p].size);
      for (int64_t begin = std::max(part.begin, offset); begin < end; begin += kDrawnAtOnce) {
        const int64_t count = std::min(kDrawnAtOnce, end - begin);
        weights->flat()
            .narrow(0, begin, count)
            .copy_(drawing.Draw(p, parameters[p], begin - offset, count));
      }
    }
  }
  return weights;
}

absl::StatusOr<std::shared_ptr<Weights>> Weights::RandomShard(const ModelConfig& config,
                                                              uint64_t seed, at::Device device,
                                                              at::ScalarType dtype,
                                                              const WeightShard& shard) {
  ASSIGN_OR_RETURN(const ModelConfig part, ShardConfig(config, shard.ranks));
  auto weights = std::make_shared<Weights>(part, device, dtype);
  const ParameterLayout whole(config);
  Drawing drawing(config, seed);
  for (size_t p = 0; p < whole.parameters.size(); ++p) {
    const ParameterInfo& info = whole.parameters[p];
    const at::Tensor& own = weights->Get(info.name);
    if (info.shape.size() == 1) {
      own.fill_(1.0);
      continue;
    }
    // Whole rows are drawn, of which the rank may have a few columns.
    const ShardSlice slice = SliceOf(info, weights->layout().parameters[p], shard.rank);
    const int64_t most = std::max<int64_t>(1, kDrawnAtOnce / slice.width);
    for (int64_t row = 0; row < slice.rows; row += most) {
      const int64_t rows = std::min(most, slice.rows - row);
      own.narrow(0, row, rows)
          .copy_(drawing.Draw(p, info, (slice.row + row) * slice.width, rows * slice.width)
                     .view({rows, slice.width})
                     .narrow(1, slice.column, slice.columns));
    }
  }
  return weights;
}

}  // namespace tritonrl
