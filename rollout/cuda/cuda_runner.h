// The engine's model on a GPU: steps that only decode are replayed CUDA graphs, tokens are drawn on
// the GPU, and the next step can be launched before the last one's tokens are known.
#ifndef TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_H_
#define TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/weights/weights.h"
#include "rollout/cuda/attention/prefill_plan.h"
#include "rollout/engine/engine_config.h"
#include "rollout/engine/model_runner.h"

namespace tritonrl {

// One GPU, one stream of its own. Which ways products are made is tried out anew in each process,
// so that another process can round differently, unless it is batch-invariant.
class CudaRunner : public ModelRunner {
 public:
  // Whether it takes these weights: bf16 on a GPU, heads of 64 or 128 elements, at most 16 query
  // heads for a key head, a vocabulary of a multiple of 4 and at most 2^20, other sizes multiples
  // of 8.
  static bool Supports(const Weights& weights);

  // Shares `weights`. Sums over ranks are in the graphs. InvalidArgument: a field out of range, or
  // two that do not go together. FailedPrecondition: fp8_weights on a GPU without such products.
  // ResourceExhausted: the memory does not do, with the sizes and what to lower.
  static absl::StatusOr<std::unique_ptr<CudaRunner>> Create(std::shared_ptr<Weights> weights,
                                                            const EngineConfig& config,
                                                            const EngineContext& context);
  ~CudaRunner() override;

  int64_t vocab_size() const override;
  int64_t max_length() const override { return context_.max_length; }
  int num_pages() const override;
  int page_size() const override;
  int max_num_seqs() const override { return config_.max_num_seqs(); }
  int max_num_batched_tokens() const override { return config_.max_num_batched_tokens(); }
  bool batch_invariant() const override { return config_.batch_invariant(); }
  int chunk_alignment() const override { return config_.batch_invariant() ? kInvariantChunk : 1; }
  int prefill_budget() const override { return config_.prefill_budget(); }
  int max_in_flight() const override { return kInFlight; }
  void WeightsChanged() override;  // waits for all that the GPU has been given
  absl::Status Sleep() override;
  absl::Status Wake() override;
  absl::Status Launch(const ModelStep& step) override;
  absl::StatusOr<std::vector<TokenDraw>> Collect() override;

  // Graphs captured so far, and the seconds that took with the search for their products.
  int graphs() const;
  double graph_seconds() const;
  // Whether steps of few rows are made by the persistent fused kernel.
  bool fused_decode() const;

 private:
  static constexpr int kInFlight = 2;  // steps

  struct Impl;
  CudaRunner(const EngineConfig& config, const EngineContext& context, std::unique_ptr<Impl> impl);

  const EngineConfig config_;  // with no 0 left
  const EngineContext context_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_H_
