#ifndef TRITONRL_ROLLOUT_CUDA_CUDA_TRANSFORMER_H_
#define TRITONRL_ROLLOUT_CUDA_CUDA_TRANSFORMER_H_

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "model/cuda/gemm/gemm.h"
#include "model/layers/decoder_layer.h"
#include "model/layers/rotary.h"
#include "model/weights/weights.h"
#include "parallel/collectives.h"
#include "rollout/cuda/attention/decode_plan.h"
#include "rollout/cuda/attention/paged_kv_layout.h"
#include "rollout/cuda/attention/prefill_plan.h"
#include "rollout/cuda/cuda_kv_cache.h"
#include "rollout/cuda/fp8_weights.h"

// A second stream for work that runs beside that of the current one.
//
// CUDA transformer forward for one step: embedding, decoder layers over the paged KV cache, logits.
// Launches go to the current stream; decode-only steps can be captured in a CUDA graph.

namespace tritonrl {

class SideStream {
 public:
  explicit SideStream(c10::Device device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {}

  // What is launched here from now on comes behind what is in the current stream.
  void Fork() {
    forked_.record(c10::cuda::getCurrentCUDAStream(stream_.device_index()));
    forked_.block(stream_);
  }
  // What is launched in the current stream from now on comes behind what is here.
  void Join() {
    joined_.record(stream_);
    joined_.block(c10::cuda::getCurrentCUDAStream(stream_.device_index()));
  }
  // Until nothing is left here. Gives what CUDA says.
  cudaError_t Synchronize() const { return cudaStreamSynchronize(stream_.stream()); }
  void* stream() const { return stream_.stream(); }  // a cudaStream_t

 private:
  const c10::cuda::CUDAStream stream_;
  at::cuda::CUDAEvent forked_, joined_;
};

// What a step reads, in GPU memory. The first rows are those of sequences that decode one token
// each, as many as the plan has; behind them chunks, one after the other; then rows that fill up.
struct StepInputs {
  int64_t rows = 0;                    // R, all of them
  const DecodePlan* decode = nullptr;  // null: no row decodes
  const int32_t* decode_words = nullptr;
  const PrefillPlan* chunks = nullptr;  // null: no chunks
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

class CudaTransformer {
 public:
  struct Options {
    int64_t max_rows = 0;    // of a step, a multiple of 16
    int64_t max_logits = 0;  // rows of which logits are wanted
    // With batch_invariant both are multiples of CudaGemm::kPinnedRows.
    int64_t max_context = 0;   // tokens of the longest sequence
    bool fused_decode = true;  // where GPU, sizes and what follows allow (see CudaRunner::Options)
    // Plans are (StepPacker::Limits), and PinAlgorithm is called before the first step.
    bool batch_invariant = false;
    CacheType cache = CacheType::kBFloat16;
    // For weights of which Fp8Weights::Supports is true, on a GPU of compute capability 9.0.
    bool fp8_weights = false;
    Collectives* ranks = nullptr;  // over which the weights are spread; null: they are not
  };

  // Throws c10::Error without the memory. QuantizeWeights is to be called before the first step.
  CudaTransformer(std::shared_ptr<Weights> weights, const Options& options);

  int64_t vocab() const { return weights_->config().vocab_size; }
  // Bytes that an object takes beside the weights.
  static int64_t Bytes(const ModelConfig& config, const Options& options);

  // Makes the copies that fp8_weights is about, if it is on, from what the weights are now.
  void QuantizeWeights();

  // Finds the fastest products for steps of `rows` rows, all of which decode. To be called before
  // such a step is captured.
  void Autotune(int64_t rows);
  // In place of that: one way for each product, whatever the rows (CudaGemm::PinAlgorithm). A row's
  // results then have the same bits in all steps and processes. Throws c10::Error if cuBLASLt knows
  // none.
  void PinAlgorithm();

  // Writes logits [step.logit_rows, vocab] fp32 to logits(), keys and values to `cache`.
  void Run(const StepInputs& step, CudaKvCache* cache);
  // Until work beside the current stream is done, which a step that failed may have left. Throws
  // c10::Error if the GPU has failed.
  void Synchronize() const;
  const at::Tensor& logits() const { return logits_; }
  // Whether steps of few rows are made by the persistent fused kernel.
  bool fused_decode() const { return fused_decode_; }

 private:
  void Embed(const StepInputs& step);
  void Attend(const StepInputs& step, int64_t layer, CudaKvCache* cache);
  void Layer(const StepInputs& step, int64_t layer, CudaKvCache* cache);
  // The same with products on 8-bit numbers.
  void Fp8Layer(const StepInputs& step, int64_t layer, CudaKvCache* cache);
  bool UsesFusedKernel(int64_t rows) const;
  // The layers of a step of few rows, by the persistent fused kernel.
  void FusedLayers(const StepInputs& step, CudaKvCache* cache);
  // What follows attention in a layer, and the next one's queries, keys and values.
  void FusedLayer(const StepInputs& step, int64_t layer);
  // out = x weight^T (+ add), x as it is.
  void Multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor* add,
                const at::Tensor& out);
  // A product whose input's columns are divided over ranks gives each a share of `out`: what it may
  // add by itself (nothing if there are ranks), and what is left to do behind it.
  const at::Tensor* Added(const at::Tensor& add) const {
    return ranks_ == nullptr ? &add : nullptr;
  }
  void AllReducePartials(const at::Tensor& add, const at::Tensor& out);
  // out = norm(x) weight^T; swiglu: of which `out` gets silu(gate) * up.
  void NormMultiply(const at::Tensor& x, const at::Tensor& norm, const at::Tensor& weight,
                    bool swiglu, const at::Tensor& out);
  void Head(const StepInputs& step);

  Collectives* const ranks_;
  const std::shared_ptr<Weights> weights_;
  const ModelConfig& config_;
  const CacheHeads shape_;
  std::vector<DecoderLayerParameters> layers_;
  at::Tensor embedding_, final_norm_, head_;
  RotaryTable rotary_;
  CudaGemm gemm_;
  SideStream chunk_stream_;  // for attention of chunks beside rows that decode
  const bool overlap_;       // whether kernels may begin while the one before them ends
  const bool fused_decode_;
  std::unique_ptr<Fp8Weights> fp8_weights_;  // null: off
  std::set<int64_t> tuned_;
  // [max_rows, ...] bf16; x_ is the residual stream, post_attention_ the same behind attention.
  at::Tensor x_, post_attention_, normed_, qkv_, queries_, attention_, gate_up_, inner_;
  at::Tensor rstd_;             // fp32
  at::Tensor parts_, arrived_;  // of rows whose attention is divided
  at::Tensor fused_workspace_;  // see MegakernelPlan
  at::Tensor picked_;           // [max_logits, C]
  at::Tensor logits_;           // [max_logits, V] fp32
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_TRANSFORMER_H_
