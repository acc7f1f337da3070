// The engine's model on a GPU: steps that only decode are replayed CUDA graphs, tokens are drawn on
// the GPU, and the next step can be launched before the last one's tokens are known.
#ifndef TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_H_
#define TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/weights.h"
#include "parallel/rank_sum.h"
#include "rollout/cuda/chunk_plan.h"
#include "rollout/model_runner.h"

namespace tritonrl {

// One GPU, one stream of its own. Which ways products are made is tried out anew in each process,
// so that another process can round differently, unless it is batch-invariant.
class CudaRunner : public ModelRunner {
 public:
  struct Options {
    // Most sequences that run side by side.
    int max_running = 256;
    // Memory for keys and values; 0: enough for max_running sequences of max_length, but at most
    // nine tenths of what the GPU has free beside everything else and spare_bytes.
    int64_t cache_bytes = 0;
    // Memory that others will take and keep beside the engine; only for cache_bytes of 0.
    int64_t spare_bytes = 0;
    // Most tokens of a step, prompts and running sequences together; 0: 8192.
    int max_step_tokens = 0;
    // While samples wait, chunks of prompts fill steps up to so many tokens; 0: up to
    // max_step_tokens. At the size of Qwen3-8B on an H200 products of 256 rows take as long for
    // arithmetic as for reading the weights.
    int weights_bound_tokens = 256;
    // Most tokens of prompt and response together; 0: the model's max_position_embeddings.
    int64_t max_length = 0;
    // Whether steps of at most 16 rows make a layer's products in one launch
    // (model/cuda/product_chain.h): for Hopper, bf16 weights in multiples of 512 that are not
    // spread, and not where steps are batch-invariant.
    bool chains = true;
    // A sample's tokens and log-probabilities have the same bits whatever else is in the batch,
    // with any sizes above and in every process on this kind of GPU with the same libraries: one
    // way for each product, one kernel and split for attention, prompts cut at multiples of
    // kInvariantChunk. max_step_tokens is then raised to at least max_running and so many.
    bool batch_invariant = false;
    // Keys and values as 8-bit numbers: half the memory of a token. Log-probabilities are others
    // than the learner's by more than rounding in bf16.
    bool fp8_cache = false;
    // Products of the layers' matrices on 8-bit numbers (fp8_weights.h), of copies that take half
    // the weights' memory beside them. As above.
    bool fp8_weights = false;
    // Whether ReleaseMemory gives back the memory of keys and values. It is not torch's then, but
    // TakeMemory makes torch's allocator give back what that keeps for later, if need be.
    bool releasable_memory = false;
    // Tensor parallelism: `weights` are one rank's part, and all ranks run the same steps. The
    // tokens that slots remember are rank 0's. Sums are in the graphs.
    RankSum* ranks = nullptr;
  };

  // Whether it takes these weights: bf16 on a GPU, heads of 64 or 128 elements, at most 16 query
  // heads for a key head, a vocabulary of a multiple of 4 and at most 2^20, other sizes multiples
  // of 8.
  static bool Takes(const Weights& weights);

  // Shares `weights`. InvalidArgument: an option out of range, or two that do not go together.
  // FailedPrecondition: fp8_weights on a GPU without such products. ResourceExhausted: the memory
  // does not do, with the sizes and what to lower.
  static absl::StatusOr<std::unique_ptr<CudaRunner>> Create(std::shared_ptr<Weights> weights,
                                                            const Options& options);
  ~CudaRunner() override;

  int64_t vocab_size() const override;
  int64_t max_length() const override { return options_.max_length; }
  int num_pages() const override;
  int page_size() const override;
  int max_running() const override { return options_.max_running; }
  int max_step_tokens() const override { return options_.max_step_tokens; }
  bool batch_invariant() const override { return options_.batch_invariant; }
  int chunk_multiple() const override { return options_.batch_invariant ? kInvariantChunk : 1; }
  int weights_bound_tokens() const override { return options_.weights_bound_tokens; }
  int max_in_flight() const override { return kInFlight; }
  void WeightsChanged() override;  // waits for all that the GPU has been given
  absl::Status ReleaseMemory() override;
  absl::Status TakeMemory() override;
  absl::Status Launch(const ModelStep& step) override;
  absl::StatusOr<std::vector<TokenDraw>> Collect() override;

  // Graphs captured so far, and the seconds that took with the search for their products.
  int graphs() const;
  double graph_seconds() const;
  // Whether steps of few rows are made by chains of products.
  bool chains() const;

 private:
  static constexpr int kInFlight = 2;  // steps under way

  struct Impl;
  CudaRunner(const Options& options, std::unique_ptr<Impl> impl);

  const Options options_;  // with no 0 left
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_RUNNER_H_
