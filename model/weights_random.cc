// Weights::RandomInit: normal numbers keyed by parameter and element, drawn by several threads.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "model/weights.h"

namespace tritonrl {
namespace {

constexpr double kInitStd = 0.02;
constexpr int64_t kDrawnAtOnce = int64_t{16} << 20;

// values[i] = element first + i of the normal numbers with this key, times `std`.
void DrawNormals(uint64_t key, int64_t first, double std, const at::Tensor& values,
                 ThreadPool* threads) {
  constexpr int64_t kPiece = 1 << 16;
  float* data = values.data_ptr<float>();
  const int64_t count = values.numel();
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    threads->Schedule([=] {
      Philox random(key);
      random.SkipBlocks(first + begin);
      for (int64_t i = begin; i < std::min(count, begin + kPiece); ++i) {
        data[i] = static_cast<float>(random.Normal() * std);
      }
    });
  }
  threads->Wait();
}

}  // namespace

std::shared_ptr<Weights> Weights::RandomInit(const ModelConfig& config, uint64_t seed,
                                             at::Device device, at::ScalarType dtype,
                                             absl::Span<const FlatRange> parts) {
  auto weights = std::make_shared<Weights>(config, device, dtype);
  const double residual_std = kInitStd / std::sqrt(2.0 * config.num_layers);
  const std::vector<ParameterInfo>& parameters = weights->layout().parameters;
  const FlatRange whole = {0, weights->layout().flat_size};
  if (parts.empty()) parts = absl::MakeConstSpan(&whole, 1);
  ThreadPool threads(at::get_num_threads());
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].shape.size() == 1) {
      weights->Get(parameters[p].name).fill_(1.0);
      continue;
    }
    const bool residual = absl::EndsWith(parameters[p].name, "o_proj.weight") ||
                          absl::EndsWith(parameters[p].name, "down_proj.weight");
    const int64_t offset = parameters[p].offset;
    for (const FlatRange& part : parts) {
      const int64_t end = std::min(part.end, offset + parameters[p].size);
      for (int64_t begin = std::max(part.begin, offset); begin < end; begin += kDrawnAtOnce) {
        const int64_t count = std::min(kDrawnAtOnce, end - begin);
        const at::Tensor values = at::empty({count}, at::kFloat);
        DrawNormals(MixKeys({seed, p}), begin - offset, residual ? residual_std : kInitStd, values,
                    &threads);
        weights->flat().narrow(0, begin, count).copy_(values);
      }
    }
  }
  return weights;
}

}  // namespace tritonrl
