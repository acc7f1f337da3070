// Model runner on LibTorch, for every device.

#ifndef TRITONRL_ROLLOUT_ENGINE_TRANSFORMER_RUNNER_H_
#define TRITONRL_ROLLOUT_ENGINE_TRANSFORMER_RUNNER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/paged_cache.h"
#include "model/transformer.h"
#include "model/weights/weights.h"
#include "rollout/engine/engine_config.h"
#include "rollout/engine/model_runner.h"
#include "rollout/engine/sampler.h"

namespace tritonrl {

// A ModelRunner on LibTorch: a Transformer with its KV cache on any device, and Samplers on the
// CPU. A step has run when Launch returns. LibTorch's exceptions become a Status.
class TransformerRunner : public ModelRunner {
 public:
  // Shares `weights`; the cache has their device and type. InvalidArgument: a field of `config` or
  // `context` is out of range, or needs CudaRunner. ResourceExhausted: the cache does not fit; the
  // message gives its size and the setting to lower.
  static absl::StatusOr<std::unique_ptr<TransformerRunner>> Create(std::shared_ptr<Weights> weights,
                                                                   const EngineConfig& config,
                                                                   const EngineContext& context);

  int64_t vocab_size() const override { return transformer_->config().vocab_size; }
  int64_t max_length() const override { return context_.max_length; }
  int num_pages() const override { return num_pages_; }
  int page_size() const override { return PagedKvCache::kPageSize; }
  int max_num_seqs() const override { return config_.max_num_seqs(); }
  int max_num_batched_tokens() const override { return config_.max_num_batched_tokens(); }
  int64_t max_prompt_logits() const override;
  int max_in_flight() const override { return 1; }
  // Returns the cache's memory to LibTorch's allocator of the device.
  absl::Status Sleep() override;
  absl::Status Wake() override;
  absl::Status Launch(const ModelStep& step) override;
  absl::StatusOr<std::vector<TokenDraw>> Collect() override;
  std::vector<TokenLogProbs> TakePromptLogProbs() override;

 private:
  TransformerRunner(const EngineConfig& config, const EngineContext& context,
                    std::unique_ptr<Transformer> transformer, std::unique_ptr<PagedKvCache> cache);

  // Logits [sum of the slices' logit_rows(), vocab] on the CPU.
  at::Tensor RunModel(const ModelStep& step);
  std::vector<TokenDraw> DrawAll(const ModelStep& step, const at::Tensor& logits);
  // The log-probabilities of the step's prompt_targets.
  std::vector<TokenLogProbs> FindPromptLogProbs(const ModelStep& step, const at::Tensor& logits);
  // Copies rank 0's last tokens to all ranks.
  void BroadcastDraws();

  const EngineConfig config_;  // with all defaults filled in
  const EngineContext context_;
  const int num_pages_;
  std::unique_ptr<Transformer> transformer_;
  std::unique_ptr<PagedKvCache> cache_;  // null while asleep
  std::vector<Sampler> samplers_;        // one for each thread
  std::vector<int32_t> last_token_;      // of each slot
  std::deque<std::vector<TokenDraw>> results_;
  std::vector<TokenLogProbs> prompt_log_probs_;  // of the step launched last
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_TRANSFORMER_RUNNER_H_
