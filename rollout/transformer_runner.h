#ifndef TRITONRL_ROLLOUT_TRANSFORMER_RUNNER_H_
#define TRITONRL_ROLLOUT_TRANSFORMER_RUNNER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/decode_cache.h"
#include "model/transformer.h"
#include "model/weights.h"
#include "rollout/batched_engine.h"
#include "rollout/engine.h"
#include "rollout/model_runner.h"

namespace tritonrl {

// A Transformer with its cache, on any device. LibTorch's exceptions become a Status here.
class TransformerRunner : public ModelRunner {
 public:
  struct Options {
    // Sequences that run side by side.
    int num_slots = 64;
    // Most tokens of prompt and response together; 0 means the model's max_position_embeddings.
    int64_t max_length = 0;
    // Threads on the CPU; 0 means all hardware threads. Results do not depend on it.
    int cpu_threads = 0;
  };

  // Shares `weights`, whose device and type are used for the cache too. ResourceExhausted if the
  // cache does not fit, with its size and what to lower.
  static absl::StatusOr<std::unique_ptr<TransformerRunner>> Create(std::shared_ptr<Weights> weights,
                                                                   const Options& options);

  int64_t vocab_size() const override;
  int num_slots() const override;
  int64_t max_length() const override;
  absl::Status Prefill(const std::vector<int32_t>& prompt, const std::vector<int64_t>& slots,
                       std::vector<float>* logits) override;
  absl::Status CopyPrompt(int64_t from, int64_t to, int64_t length) override;
  absl::StatusOr<std::span<const float>> Decode(const std::vector<int64_t>& tokens,
                                                const std::vector<int64_t>& slots,
                                                const std::vector<int64_t>& positions) override;

 private:
  TransformerRunner(std::unique_ptr<Transformer> transformer, std::unique_ptr<DecodeCache> cache);

  std::unique_ptr<Transformer> transformer_;
  std::unique_ptr<DecodeCache> cache_;
  at::Tensor logits_;  // Of the last Decode, on the CPU.
};

// An engine for `weights`, which it shares and does not copy.
absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(
    std::shared_ptr<Weights> weights, const TransformerRunner::Options& runner_options,
    const BatchedEngine::Options& options = {});

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_TRANSFORMER_RUNNER_H_
