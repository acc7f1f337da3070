// The model runner on a GPU. It replays decode-only steps as CUDA graphs, draws tokens on the GPU,
// and can launch the next step before the last step's tokens are known.
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

// Runs on one GPU, in a stream of its own. Draws that draws_on_host(), and log-probabilities beyond
// that of the drawn token, are computed before Launch returns. Each process autotunes its GEMM
// algorithms anew, so two processes can round differently, unless the runner is batch-invariant.
class CudaRunner : public ModelRunner {
 public:
  // Whether the runner supports these weights: bf16 on a GPU, heads of 64 or 128 elements, at most
  // 16 query heads per key head, a vocabulary size that is a multiple of 4 and below 2^20, other
  // sizes that are multiples of 8.
  static bool Supports(const Weights& weights);

  // Shares `weights`. The CUDA graphs contain the all-reduces over ranks. InvalidArgument: a field
  // is out of range, or contradicts another field. FailedPrecondition: fp8_weights on a GPU that
  // does not support these GEMMs. ResourceExhausted: too little GPU memory is free; the message has
  // the sizes and the fields to lower.
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
  // Waits for all work on the GPU. With fp8_weights it also quantizes the new weights; if that
  // fails, Launch returns the error.
  void WeightsChanged() override;
  absl::Status Sleep() override;
  absl::Status Wake() override;
  absl::Status Launch(const ModelStep& step) override;
  absl::StatusOr<std::vector<TokenDraw>> Collect() override;
  std::vector<TokenLogProbs> TakePromptLogProbs() override;

  // Number of captured graphs, and the seconds that captures (failed ones included) and autotuning
  // took.
  int graphs() const;
  double graph_seconds() const;
  // Whether the persistent fused kernel (megakernel) runs steps of few rows.
  bool fused_decode() const;

 private:
  static constexpr int kInFlight = 2;  // steps

  struct Impl;
  CudaRunner(const EngineConfig& config, const EngineContext& context, std::unique_ptr<Impl> impl);

  const EngineConfig config_;  // resolved: no field is 0 for "default"
  const EngineContext context_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_H_
