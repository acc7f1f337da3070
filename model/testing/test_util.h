// Models and inputs for tests and benches.

#ifndef TRITONRL_MODEL_TESTING_TEST_UTIL_H_
#define TRITONRL_MODEL_TESTING_TEST_UTIL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/layers/packed_batch.h"
#include "model/sequence_slice.h"
#include "model/weights/model_config.h"
#include "model/weights/weights.h"

namespace tritonrl {

// Returns normally distributed fp64 numbers on the CPU, which depend on `seed` alone.
at::Tensor RandomTensor(at::IntArrayRef shape, uint64_t seed, double scale = 1.0);

// Returns a small model whose sizes are no multiples of the kernels' blocks.
ModelConfig SmallConfig(ModelFamily family = ModelFamily::kQwen3, bool tied = true);

// Returns random weights on the CPU, large enough that every part of the model affects the result.
// Norm weights differ from 1.
std::shared_ptr<Weights> SmallWeights(const ModelConfig& config, uint64_t seed,
                                      at::ScalarType dtype = at::kFloat);

// Returns weights drawn on the device: matrices from normal(0, 0.02), norm weights 1.
std::shared_ptr<Weights> RandomWeights(const ModelConfig& config, at::Device device,
                                       at::ScalarType dtype);

// Returns one random sequence of tokens per length, which depend on `seed` alone.
std::vector<std::vector<int32_t>> RandomTokens(const ModelConfig& config,
                                               const std::vector<int64_t>& lengths, uint64_t seed);

// Returns the sequences of RandomTokens, packed on `device`.
PackedBatch RandomBatch(const ModelConfig& config, const std::vector<int64_t>& lengths,
                        uint64_t seed, at::Device device);

// Returns a slice of a step without a batch slot. The step computes the logits of its last
// `logit_rows` tokens.
inline SequenceSlice SliceOf(std::span<const int32_t> tokens, int64_t first,
                             std::span<const int32_t> pages, int logit_rows = 1) {
  return {.tokens = tokens,
          .first = first,
          .count = static_cast<int64_t>(tokens.size()),
          .pages = pages,
          .draws = logit_rows,
          .num_draft_tokens = logit_rows > 1 ? logit_rows - 1 : 0};
}

// Returns the largest absolute difference, computed in fp64.
double MaxDifference(const at::Tensor& a, const at::Tensor& b);
// Returns the largest absolute difference divided by the largest absolute value of `expected`.
double RelativeDifference(const at::Tensor& actual, const at::Tensor& expected);
// Whether a and b have the same type, shape and bits.
bool SameBits(const at::Tensor& a, const at::Tensor& b);

// Returns the reason for GTEST_SKIP() why `device` cannot be tested on this machine; empty if it
// can.
std::string MissingDevice(at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TESTING_TEST_UTIL_H_
