#include "rollout/cuda/gather_log_probs.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/topk.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <tuple>

namespace tritonrl {

std::vector<TokenLogProbs> GatherLogProbs(const at::Tensor& logits, std::span<const int32_t> tokens,
                                          int top) {
  const int64_t rows = logits.size(0);
  TORCH_CHECK(rows == static_cast<int64_t>(tokens.size()), rows, " rows of logits for ",
              tokens.size(), " tokens");
  std::vector<TokenLogProbs> result(rows);
  if (rows == 0) return result;
  const at::Tensor ids = at::empty({rows, 1}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), ids.data_ptr<int64_t>());
  const at::Tensor log_probs = at::log_softmax(logits, /*dim=*/1);
  const at::Tensor own = at::gather(log_probs, 1, ids.to(logits.device()));
  const at::Tensor more_likely = at::sum(at::gt(log_probs, own), 1).cpu();
  const int64_t kept = std::min<int64_t>(top, logits.size(1));
  const auto [values, places] = at::topk(log_probs, std::max<int64_t>(kept, 1), 1);
  const at::Tensor own_cpu = own.cpu(), values_cpu = values.cpu().contiguous(),
                   places_cpu = places.cpu().contiguous();
  const float* own_data = own_cpu.const_data_ptr<float>();
  const int64_t* ranks = more_likely.const_data_ptr<int64_t>();
  const float* top_values = values_cpu.const_data_ptr<float>();
  const int64_t* top_ids = places_cpu.const_data_ptr<int64_t>();
  const int64_t stride = values_cpu.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    TokenLogProbs& entry = result[row];
    entry.token = {tokens[row], own_data[row]};
    entry.rank = static_cast<int32_t>(ranks[row]) + 1;
    for (int64_t k = row * stride; k < row * stride + kept; ++k) {
      entry.top.push_back({static_cast<int32_t>(top_ids[k]), top_values[k]});
    }
    // topk leaves the order of equal values open.
    std::stable_sort(
        entry.top.begin(), entry.top.end(), [](const TokenLogProb& a, const TokenLogProb& b) {
          return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.token < b.token;
        });
  }
  return result;
}

}  // namespace tritonrl
