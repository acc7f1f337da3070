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

// Normal numbers keyed by `seed`, fp64 on the CPU.
at::Tensor RandomTensor(at::IntArrayRef shape, uint64_t seed, double scale = 1.0);

// Sizes that are no multiples of the kernels' blocks.
ModelConfig SmallConfig(ModelFamily family = ModelFamily::kQwen3, bool tied = true);

// Weights large enough that every part of the model matters, norm weights not 1.
std::shared_ptr<Weights> SmallWeights(const ModelConfig& config, uint64_t seed,
                                      at::ScalarType dtype = at::kFloat);

// Matrices normal(0, 0.02), norms one, drawn on the device.
std::shared_ptr<Weights> RandomWeights(const ModelConfig& config, at::Device device,
                                       at::ScalarType dtype);

// One token list for each length, keyed by `seed`.
std::vector<std::vector<int32_t>> RandomTokens(const ModelConfig& config,
                                               const std::vector<int64_t>& lengths, uint64_t seed);

// The same, packed on `device`.
PackedBatch RandomBatch(const ModelConfig& config, const std::vector<int64_t>& lengths,
                        uint64_t seed, at::Device device);

// A slice of a step without a slot; the logits of its last `logit_rows` tokens are wanted.
inline SequenceSlice SliceOf(std::span<const int32_t> tokens, int64_t first,
                             std::span<const int32_t> pages, int logit_rows = 1) {
  return {.tokens = tokens,
          .first = first,
          .count = static_cast<int64_t>(tokens.size()),
          .pages = pages,
          .draws = logit_rows,
          .num_draft_tokens = logit_rows > 1 ? logit_rows - 1 : 0};
}

// Largest absolute difference, computed in fp64.
double MaxDifference(const at::Tensor& a, const at::Tensor& b);
// Largest absolute difference divided by the largest absolute value of `expected`.
double RelativeDifference(const at::Tensor& actual, const at::Tensor& expected);
// Same type, shape and bits.
bool SameBits(const at::Tensor& a, const at::Tensor& b);

// For GTEST_SKIP(): why `device` cannot be tested on this machine; empty if it can.
std::string MissingDevice(at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TESTING_TEST_UTIL_H_
