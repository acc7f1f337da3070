// Decoder-only transformer (Qwen3 and Llama families): forward, explicit backward, decoding.

#ifndef TRITONRL_MODEL_TRANSFORMER_H_
#define TRITONRL_MODEL_TRANSFORMER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "model/layers/activations.h"
#include "model/layers/decoder_layer.h"
#include "model/layers/layer_context.h"
#include "model/layers/packed_batch.h"
#include "model/paged_cache.h"
#include "model/sequence_slice.h"
#include "model/weights/model_config.h"
#include "model/weights/weights.h"
#include "parallel/collectives.h"

namespace tritonrl {

struct ForwardResult {
  // [T] fp32: log softmax(logits / temperature)[target]; 0 where there is no target.
  at::Tensor log_probs;
  // [T] fp32: entropy in nats of softmax(logits / temperature); 0 where there is no target.
  at::Tensor entropy;
};

// There is no autograd: each layer's backward is written out beside its forward. On the CPU in fp32
// hand-written kernels run, whose results depend neither on the number of threads nor on the rest
// of the batch. On a GPU in fp32 and bf16 the kernels of model/cuda run, all else through ATen.
class Transformer {
 public:
  struct Options {
    // Threads of the CPU kernels; 0: all hardware threads. Does not change results.
    int cpu_threads = 0;
    // Rows of logits that the LM head holds at a time; 0: see HeadSettings.
    int64_t head_chunk_rows = 0;
    // Runs everything through ATen, for comparison with the CPU kernels.
    bool force_aten = false;
    // gpu.fp8_projections applies to Forward and ForwardBackward, not to Step and Logits.
    GpuOptions gpu;
    // Tensor parallelism: the weights are one rank's shard, and Step, the only method for a sharded
    // model, all-reduces over these ranks. Through ATen; a row's bits then depend on other rows.
    Collectives* ranks = nullptr;
  };

  // Shares `weights`: the next call sees the optimizer's changes.
  Transformer(const ModelConfig& config, std::shared_ptr<Weights> weights, const Options& options);
  Transformer(const ModelConfig& config, std::shared_ptr<Weights> weights);
  ~Transformer();

  const ModelConfig& config() const { return config_; }
  const std::shared_ptr<Weights>& weights() const { return weights_; }
  const Options& options() const;

  // Activations that the backward pass recomputes, one set for each layer; empty: none, as at first
  // (memory_plan.h chooses). Changes no result. Not to be called during a pass.
  void set_recompute(std::vector<RecomputeSet> layers);

  // targets: [T] int64, -1 = none (the head is not computed there). temperature > 0.
  // saved: receives what Backward needs, or null. Throws c10::Error or std::bad_alloc without
  // memory.
  ForwardResult Forward(const PackedBatch& batch, const at::Tensor& targets, double temperature,
                        Activations* saved) const;

  // Adds dLoss/dParameter to `gradients` (fp32), given d_log_probs = dLoss/dlog_probs [T] fp32.
  void Backward(const Activations& saved, const at::Tensor& d_log_probs,
                Gradients* gradients) const;

  // Forward, loss and backward of one batch with the least memory: the head's logits are computed
  // once, and a layer's activations are freed when its backward is done.
  //
  // `loss` is called for runs of rows with a target, in ascending order. `rows` [R] int64 are their
  // places in the batch; it returns dLoss/dlog_probs [R] fp32.
  //
  // kOverwrite gives the same as kAccumulate on zeros, whatever `gradients` held, and saves the
  // time to zero them. An exception leaves `gradients` undefined.
  //
  // `ready_hook(offset)` is called with falling offsets, the first elements of the layout's parts,
  // the same for each batch: later work on the current stream does not change gradients->flat()
  // from there on. Before it, `overwrite_hook` is called with the same offset, ahead of every write
  // there; its first call is also ahead of a tied head's gradient. Gradients in a ring buffer
  // (gradient_ring_buffer.h) need kOverwrite, and the caller must have moved final values away
  // before their memory is overwritten.
  enum class GradientWrite { kAccumulate, kOverwrite };
  using ReadyHook = absl::FunctionRef<void(int64_t offset)>;
  using OverwriteHook = absl::FunctionRef<void(int64_t offset)>;
  using TokenLoss = absl::FunctionRef<at::Tensor(
      const at::Tensor& rows, const at::Tensor& log_probs, const at::Tensor& entropy)>;
  ForwardResult ForwardBackward(
      const PackedBatch& batch, const at::Tensor& targets, double temperature, TokenLoss loss,
      GradientWrite sum, Gradients* gradients, ReadyHook ready_hook = [](int64_t) {},
      OverwriteHook overwrite_hook = [](int64_t) {}) const;

  // Logits [T, vocab] fp32 of every token, not divided by a temperature. For tests and inspection
  // of short batches.
  at::Tensor Logits(const PackedBatch& batch) const;

  // One step of generation: computes slices of different sequences and writes their keys and values
  // to their pages; pages that slices share are only read. A token attends to all tokens of its
  // sequence up to itself. Returns the logits [sum of logit_rows(), vocab] fp32 in the order of the
  // slices, not divided by a temperature. On the CPU in fp32 a row's bits depend on its own
  // sequence alone: not on other slices, on the cut into slices, on pages or threads. Throws
  // c10::Error for slices that do not fit the model or the cache, or have no tokens.
  at::Tensor Step(absl::Span<const SequenceSlice> slices, PagedKvCache* cache) const;

  // Calls body(i) for each i in [0, n) on the num_threads() threads of the CPU kernels; see
  // CpuThreads.
  void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> body) const;
  int num_threads() const;

 private:
  struct Impl;

  // The layers' part of Forward: the rows with a target, after the final norm. Undefined if there
  // are none.
  at::Tensor HiddenRows(const PackedBatch& batch, const at::Tensor& targets, double temperature,
                        Activations* kept, bool save_layers) const;
  // Backward from the gradient of those rows to all parameters but the head's.
  void BackwardLayers(Activations* saved, at::Tensor d_hidden, const BackwardMode& mode,
                      Gradients* gradients, ReadyHook ready_hook,
                      OverwriteHook overwrite_hook) const;

  // Embedding and all layers. Returns [T, C]. fp8: as in LayerEnvironment.
  at::Tensor RunLayers(const PackedBatch& batch, const SequenceLayout& layout, bool fp8,
                       std::vector<LayerActivations>* saved) const;

  ModelConfig config_;
  std::shared_ptr<Weights> weights_;
  std::vector<RecomputeSet> recompute_;  // of each layer; empty: none
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TRANSFORMER_H_
