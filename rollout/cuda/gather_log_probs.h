// Log-probabilities of tokens and their most likely alternatives, by ATen on any device.
#ifndef TRITONRL_ROLLOUT_CUDA_GATHER_LOG_PROBS_H_
#define TRITONRL_ROLLOUT_CUDA_GATHER_LOG_PROBS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "rollout/engine/engine.h"

namespace tritonrl {

// The same as Sampler::LogProbs for each row of `logits` [R, V] fp32 and its token, up to rounding.
// tokens [R]: ids below V. NaN where a row's logits are not all finite. Takes memory of about three
// times `logits`; waits for the device. Throws c10::Error.
std::vector<TokenLogProbs> GatherLogProbs(const at::Tensor& logits, std::span<const int32_t> tokens,
                                          int top);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_GATHER_LOG_PROBS_H_
