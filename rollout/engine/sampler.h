// Draws tokens on the CPU: biases, penalties, temperature, min-p, top-k, top-p, keyed random
// numbers.

#ifndef TRITONRL_ROLLOUT_ENGINE_SAMPLER_H_
#define TRITONRL_ROLLOUT_ENGINE_SAMPLER_H_

#include <cstdint>
#include <memory>
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
  // log softmax(logits / temperature)[token] over the whole vocabulary, of the logits before biases
  // and penalties; at temperature 1 if the temperature is 0.
  float log_prob = 0;
  // Of the token, if they were asked for (StepDraw::top_log_probs); else null.
  std::shared_ptr<const TokenLogProbs> log_probs;
};

// The tokens before a draw, for penalties.
struct TokenHistory {
  std::span<const int32_t> prompt;
  std::span<const int32_t> generated;
};

// Draws tokens from logits. Not thread-safe: holds scratch memory. The result's bits depend on the
// arguments only, on every x86-64 processor.
class Sampler {
 public:
  // `uniform` in [0, 1) picks the token by inverting the cumulative distribution. Penalties count
  // the tokens of `history`, which must be ids of `logits`. Internal error kLogitsNotFinite if the
  // logits do not give a distribution.
  absl::StatusOr<TokenDraw> Draw(std::span<const float> logits, const SamplingSettings& settings,
                                 double uniform, const TokenHistory& history = {});

  // The log-probabilities at a position whose token is `token`, with the `top` most likely tokens.
  // log_prob has the bits of Draw's at temperature 1. Internal error kLogitsNotFinite.
  absl::StatusOr<TokenLogProbs> LogProbs(std::span<const float> logits, int32_t token, int top);

 private:
  // softmax(logits * scale), with its weights in weights_.
  struct Softmax {
    int32_t best = 0;  // the lowest of the most likely tokens
    float largest = 0;
    double scale = 1;
    double total = 0;  // of the weights
    float LogProb(float logit) const;
  };

  absl::StatusOr<Softmax> FillSoftmax(std::span<const float> logits, double scale);
  // Fills weights_ with exp((logit - largest) * scale) and returns their sum.
  double FillWeights(std::span<const float> logits, float largest, float scale);
  // Fills changed_ with the logits after biases and penalties.
  void ChangeLogits(std::span<const float> logits, const SamplingSettings& settings,
                    const TokenHistory& history);
  // Sets weights below `min_p` times the largest, which is 1, to 0; returns the sum of the others.
  double CutSmallWeights(double min_p);
  int32_t DrawFromAll(double total, double uniform) const;
  int32_t DrawFromLargest(const SamplingSettings& settings, double total, double uniform);

  std::vector<float> weights_;
  std::vector<float> changed_;
  std::vector<int32_t> counts_;  // by token, 0 between calls
  std::vector<int32_t> order_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_SAMPLER_H_
