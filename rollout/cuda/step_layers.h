// The model on one step's rows: embedding, layers over the paged cache, logits. Every launch goes
// to the current stream, and a step of decoding alone may be captured in a CUDA graph.
#ifndef TRITONRL_ROLLOUT_CUDA_STEP_LAYERS_H_
#define TRITONRL_ROLLOUT_CUDA_STEP_LAYERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "model/cuda/gemm.h"
#include "model/decoder_layer.h"
#include "model/rotary.h"
#include "model/weights.h"
#include "parallel/rank_sum.h"
#include "rollout/cuda/chunk_plan.h"
#include "rollout/cuda/decode_plan.h"
#include "rollout/cuda/fp8_weights.h"
#include "rollout/cuda/gpu_cache.h"
#include "rollout/cuda/paged_layout.h"
#include "rollout/cuda/side_stream.h"

namespace tritonrl {

// What a step reads, in GPU memory. The first rows are those of sequences that decode one token
// each, as many as the plan has; behind them chunks, one after the other; then rows that fill up.
struct StepOnGpu {
  int64_t rows = 0;                    // R, all of them
  const DecodePlan* decode = nullptr;  // null: no row decodes
  const int32_t* decode_words = nullptr;
  const ChunkPlan* chunks = nullptr;  // null: no chunks
  const int32_t* chunk_words = nullptr;
  const int32_t* page_table = nullptr;
  const int32_t* slots = nullptr;         // [decode rows] whose last token is the row's; -1: unused
  const int32_t* last_tokens = nullptr;   // by slot
  const int32_t* chunk_tokens = nullptr;  // [R - decode rows]
  const int32_t* positions = nullptr;     // [R]
  const int32_t* page_slots = nullptr;    // [R]
  int64_t logit_rows = 0;
  const int32_t* logit_ids =
      nullptr;  // [logit_rows] rows that logits are wanted of; null: the first
};

class StepLayers {
 public:
  struct Options {
    int64_t max_rows = 0;    // of a step, a multiple of 16
    int64_t max_logits = 0;  // rows of which logits are wanted
    // With batch_invariant both are multiples of CudaGemm::kFixedRows.
    int64_t max_context = 0;  // tokens of the longest sequence
    bool chains = true;       // where GPU, sizes and what follows allow (see CudaRunner::Options)
    // Plans are (StepTables::Limits), and Fix is called before the first step.
    bool batch_invariant = false;
    CacheType cache = CacheType::kBFloat16;
    // For weights of which Fp8Weights::Takes is true, on a GPU of compute capability 9.0.
    bool fp8_weights = false;
    RankSum* ranks = nullptr;  // over which the weights are spread; null: they are not
  };

  // Throws c10::Error without the memory. CopyWeights is to be called before the first step.
  StepLayers(std::shared_ptr<Weights> weights, const Options& options);

  int64_t vocab() const { return weights_->config().vocab_size; }
  // Bytes that an object takes beside the weights.
  static int64_t Bytes(const ModelConfig& config, const Options& options);

  // Makes the copies that fp8_weights is about, if it is on, from what the weights are now.
  void CopyWeights();

  // Finds the fastest products for steps of `rows` rows, all of which decode. To be called before
  // such a step is captured.
  void Tune(int64_t rows);
  // In place of that: one way for each product, whatever the rows (CudaGemm::Fix). A row's results
  // then have the same bits in all steps and processes. Throws c10::Error if cuBLASLt knows none.
  void Fix();

  // Writes logits [step.logit_rows, vocab] fp32 to logits(), keys and values to `cache`.
  void Run(const StepOnGpu& step, GpuCache* cache);
  // Until work beside the current stream is done, which a step that failed may have left. Throws
  // c10::Error if the GPU has failed.
  void Synchronize() const;
  const at::Tensor& logits() const { return logits_; }
  // Whether steps of few rows are made by chains of products.
  bool chains() const { return chains_; }

 private:
  void Embed(const StepOnGpu& step);
  void Attend(const StepOnGpu& step, int64_t layer, GpuCache* cache);
  void Layer(const StepOnGpu& step, int64_t layer, GpuCache* cache);
  // The same with products on 8-bit numbers.
  void Fp8Layer(const StepOnGpu& step, int64_t layer, GpuCache* cache);
  bool Chained(int64_t rows) const;
  // The layers of a step of few rows, by chains of products.
  void ChainedLayers(const StepOnGpu& step, GpuCache* cache);
  // What follows attention in a layer, and the next one's queries, keys and values.
  void Chain(const StepOnGpu& step, int64_t layer);
  // out = x weight^T (+ add), x as it is.
  void Multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor* add,
                const at::Tensor& out);
  // A product whose input's columns are divided over ranks gives each a share of `out`: what it may
  // add by itself (nothing if there are ranks), and what is left to do behind it.
  const at::Tensor* Added(const at::Tensor& add) const {
    return ranks_ == nullptr ? &add : nullptr;
  }
  void SumShares(const at::Tensor& add, const at::Tensor& out);
  // out = norm(x) weight^T; swiglu: of which `out` gets silu(gate) * up.
  void NormMultiply(const at::Tensor& x, const at::Tensor& norm, const at::Tensor& weight,
                    bool swiglu, const at::Tensor& out);
  void Head(const StepOnGpu& step);

  RankSum* const ranks_;
  const std::shared_ptr<Weights> weights_;
  const ModelConfig& config_;
  const CacheHeads shape_;
  std::vector<DecoderLayerParameters> layers_;
  at::Tensor embedding_, final_norm_, head_;
  RotaryTable rotary_;
  CudaGemm gemm_;
  SideStream chunk_stream_;  // for attention of chunks beside rows that decode
  const bool overlap_;       // whether kernels may begin while the one before them ends
  const bool chains_;
  std::unique_ptr<Fp8Weights> fp8_weights_;  // null: off
  std::set<int64_t> tuned_;
  // [max_rows, ...] bf16; x_ is the residual stream, middle_ the same behind attention.
  at::Tensor x_, middle_, normed_, qkv_, queries_, attention_, gate_up_, inner_;
  at::Tensor rstd_;             // fp32
  at::Tensor parts_, arrived_;  // of rows whose attention is divided
  at::Tensor chain_;            // see ProductChain
  at::Tensor picked_;           // [max_logits, C]
  at::Tensor logits_;           // [max_logits, V] fp32
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_STEP_LAYERS_H_
