// Draws tokens on the CPU: temperature, top-k, top-p, keyed random numbers.

#ifndef TRITONRL_ROLLOUT_ENGINE_SAMPLER_H_
#define TRITONRL_ROLLOUT_ENGINE_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollout/engine/engine.h"

namespace tritonrl {

// InvalidArgument naming the field that is out of range, and the range.
absl::Status ValidateSampling(const SamplingSettings& settings);

// The random stream of sample `index`.
uint64_t SampleStream(const SampleKey& key, int index);

// A uniform number in [0, 1) for token `position` (0 is the first generated one) of a sample.
double TokenUniform(uint64_t stream, int64_t position);
double TokenUniform(const SampleKey& key, int index, int position);

struct TokenDraw {
  int32_t token = 0;
  // log softmax(logits / temperature)[token] over the whole vocabulary; at temperature 1 if the
  // temperature is 0.
  float log_prob = 0;
};

// Draws tokens from logits. Not thread-safe: holds scratch memory. The result's bits depend on the
// arguments only, on every x86-64 processor.
class Sampler {
 public:
  // `uniform` in [0, 1) picks the token by inverting the cumulative distribution. Internal error
  // kLogitsNotFinite if the logits do not give a distribution.
  absl::StatusOr<TokenDraw> Draw(std::span<const float> logits, const SamplingSettings& settings,
                                 double uniform);

 private:
  // Fills weights_ with exp((logit - largest) * scale) and returns their sum.
  double FillWeights(std::span<const float> logits, float largest, float scale);
  int32_t DrawFromAll(double total, double uniform) const;
  int32_t DrawFromLargest(const SamplingSettings& settings, double total, double uniform);

  std::vector<float> weights_;
  std::vector<int32_t> order_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_SAMPLER_H_
