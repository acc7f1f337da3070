// Forward pass of one generation step on a GPU: embedding, decoder layers over the paged KV cache,
// logits. Launches go to the current stream; decode-only steps can be captured in a CUDA graph.

#ifndef TRITONRL_ROLLOUT_CUDA_CUDA_TRANSFORMER_H_
#define TRITONRL_ROLLOUT_CUDA_CUDA_TRANSFORMER_H_

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <initializer_list>
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

namespace tritonrl {

// A second stream for work that runs in parallel with the current stream.
class SideStream {
 public:
  explicit SideStream(c10::Device device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {}

  // Makes later launches in this stream wait for the work in the current stream.
  void Fork() {
    forked_.record(c10::cuda::getCurrentCUDAStream(stream_.device_index()));
    forked_.block(stream_);
  }
  // Makes later launches in the current stream wait for the work in this stream.
  void Join() {
    joined_.record(stream_);
    joined_.block(c10::cuda::getCurrentCUDAStream(stream_.device_index()));
  }
  // Blocks until this stream's work is done.
  cudaError_t Synchronize() const { return cudaStreamSynchronize(stream_.stream()); }
  void* stream() const { return stream_.stream(); }  // a cudaStream_t

 private:
  const c10::cuda::CUDAStream stream_;
  at::cuda::CUDAEvent forked_, joined_;
};

// The inputs of a step, in GPU memory. Rows of the decode plan come first, then the rows of prompt
// chunks, one chunk after another, then padding.
struct StepInputs {
  int64_t rows = 0;                    // R: all rows, with padding
  const DecodePlan* decode = nullptr;  // null: no row decodes
  const int32_t* decode_words = nullptr;
  const PrefillPlan* chunks = nullptr;  // null: no chunks
  const int32_t* chunk_words = nullptr;
  const int32_t* page_table = nullptr;
  const int32_t* slots = nullptr;         // [decode rows] slot of the row's token; -1: unused row
  const int32_t* last_tokens = nullptr;   // by slot
  const int32_t* chunk_tokens = nullptr;  // [R - decode rows]
  const int32_t* positions = nullptr;     // [R]
  const int32_t* page_slots = nullptr;    // [R]
  int64_t logit_rows = 0;
  // [logit_rows] rows whose logits are needed; null: the first `logit_rows` rows.
  const int32_t* logit_ids = nullptr;
};

// Runs steps of one model; owns the buffers of activations and logits, but not the KV cache.
class CudaTransformer {
 public:
  struct Options {
    int64_t max_rows = 0;    // of a step, a multiple of 16
    int64_t max_logits = 0;  // rows with logits in a step
    // With batch_invariant max_rows and max_logits are multiples of CudaGemm::kPinnedRows.
    int64_t max_context = 0;   // tokens of the longest sequence
    bool fused_decode = true;  // if the GPU and the other options support it
    // Needs batch-invariant plans (StepPacker::Limits) and PinAlgorithm before the first step.
    bool batch_invariant = false;
    CacheType cache = CacheType::kBFloat16;
    // Needs Fp8Weights::Supports and a GPU of compute capability 9.0.
    bool fp8_weights = false;
    Collectives* ranks = nullptr;  // the ranks that hold shards of the weights; null: not sharded
  };

  // Throws c10::Error if memory is short. QuantizeWeights must be called before the first step.
  CudaTransformer(std::shared_ptr<Weights> weights, const Options& options);

  int64_t vocab() const { return weights_->config().vocab_size; }
  // Bytes of GPU memory of an object, without the weights.
  static int64_t Bytes(const ModelConfig& config, const Options& options);

  // With fp8_weights: quantizes the current weights. Else does nothing.
  void QuantizeWeights();

  // Finds the fastest GEMM algorithms for decode-only steps of `rows` rows. Must be called before
  // such a step is captured.
  void Autotune(int64_t rows);
  // Instead of Autotune: one algorithm for each GEMM and any number of rows
  // (CudaGemm::PinAlgorithm). A row's results then have the same bits in all steps and processes.
  // Throws c10::Error if cuBLASLt has no such algorithm.
  void PinAlgorithm();

  // Writes logits [step.logit_rows, vocab] fp32 to logits(), keys and values to `cache`.
  void Run(const StepInputs& step, CudaKvCache* cache);
  // Waits for this object's work outside the current stream, which a failed step may have left
  // behind. Throws c10::Error if the GPU has failed.
  void Synchronize() const;
  const at::Tensor& logits() const { return logits_; }
  // The logits [count, vocab] of rows [first, first + count) of the step that ran last, whether
  // they are among its logit_rows or not. They overwrite the first rows of logits(), of which there
  // must be `count`. Needed for prompts' log-probabilities alone.
  at::Tensor RowLogits(int64_t first, int64_t count);
  // Whether the persistent fused kernel (megakernel) runs steps of few rows.
  bool fused_decode() const { return fused_decode_; }

 private:
  void Embed(const StepInputs& step);
  void Attend(const StepInputs& step, int64_t layer, CudaKvCache* cache);
  void Layer(const StepInputs& step, int64_t layer, CudaKvCache* cache);
  // The same with FP8 GEMMs.
  void Fp8Layer(const StepInputs& step, int64_t layer, CudaKvCache* cache);
  bool UsesFusedKernel(int64_t rows) const;
  // Runs all layers of a step of few rows with the megakernel.
  void FusedLayers(const StepInputs& step, CudaKvCache* cache);
  // One megakernel launch: a layer's part after attention and the next layer's QKV projection.
  void FusedLayer(const StepInputs& step, int64_t layer);
  // out = x weight^T (+ add).
  void Multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor* add,
                const at::Tensor& out);
  // A GEMM whose input's columns are sharded over ranks gives partial results. Added(): the addend
  // for the GEMM's own epilogue; null with ranks. With ranks, AllReducePartials all-reduces `out`
  // and then adds `add`.
  const at::Tensor* Added(const at::Tensor& add) const {
    return ranks_ == nullptr ? &add : nullptr;
  }
  void AllReducePartials(const at::Tensor& add, const at::Tensor& out);
  // Adds the concatenation of `biases` to each row of `out`; nothing if they are undefined.
  static void AddBiases(std::initializer_list<at::Tensor> biases, const at::Tensor& out);
  // out = norm(x) weight^T
  void NormMultiply(const at::Tensor& x, const at::Tensor& norm, const at::Tensor& weight,
                    const at::Tensor& out);
  void Head(const StepInputs& step);

  Collectives* const ranks_;
  const std::shared_ptr<Weights> weights_;
  const ModelConfig& config_;
  const CacheHeads shape_;
  std::vector<DecoderLayerParameters> layers_;
  at::Tensor embedding_, final_norm_, head_;
  RotaryTable rotary_;
  CudaGemm gemm_;
  SideStream chunk_stream_;  // for attention of chunks in parallel with decode attention
  const bool overlap_;       // programmatic dependent launch
  const bool fused_decode_;
  std::unique_ptr<Fp8Weights> fp8_weights_;  // null: off
  std::set<int64_t> tuned_;
  // [max_rows, ...] bf16; x_ is the residual stream, post_attention_ that stream after attention.
  at::Tensor x_, post_attention_, normed_, qkv_, queries_, attention_, gate_up_, inner_;
  at::Tensor rstd_;             // fp32
  at::Tensor parts_, arrived_;  // scratch of split-KV attention
  at::Tensor fused_workspace_;  // see MegakernelPlan
  at::Tensor picked_;           // [max_logits, C]
  at::Tensor logits_;           // [max_logits, V] fp32
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_CUDA_TRANSFORMER_H_
