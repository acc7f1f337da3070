// Decoder-only transformer (Qwen3 and Llama families): forward, explicit backward and decoding.

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

// There is no autograd: each layer's backward is written out beside its forward. On the CPU, fp32
// runs on hand-written kernels, whose results depend neither on the number of threads nor on the
// rest of the batch. On a GPU, fp32 and bf16 run on the kernels of model/cuda. Everything else runs
// through ATen.
class Transformer {
 public:
  struct Options {
    // Threads of the CPU kernels; 0: all hardware threads. The number does not change results.
    int cpu_threads = 0;
    // Rows of logits that the LM head holds at a time; 0: see HeadSettings.
    int64_t head_chunk_rows = 0;
    // Runs everything through ATen, for comparison with the hand-written kernels.
    bool force_aten = false;
    // gpu.fp8_projections applies to Forward and ForwardBackward, not to Step and Logits.
    GpuOptions gpu;
    // Tensor parallelism: the weights are one rank's shard, and Step all-reduces over these ranks.
    // A sharded model supports only Step, through ATen; a row's bits then depend on other rows.
    Collectives* ranks = nullptr;
  };

  // Shares `weights`: each call sees the optimizer's latest changes.
  Transformer(const ModelConfig& config, std::shared_ptr<Weights> weights, const Options& options);
  Transformer(const ModelConfig& config, std::shared_ptr<Weights> weights);
  ~Transformer();

  const ModelConfig& config() const { return config_; }
  const std::shared_ptr<Weights>& weights() const { return weights_; }
  const Options& options() const;

  // Sets the activations that the backward pass recomputes, one set for each layer; empty, the
  // default, recomputes none (memory_plan.h chooses the sets). Does not change results. Must not be
  // called during a pass.
  void set_recompute(std::vector<RecomputeSet> layers);

  // Computes the log-probabilities of `targets` and the entropies. targets: [T] int64; -1: none,
  // and the head is not computed for that row. temperature > 0. *saved, unless null, receives the
  // activations for Backward. Throws c10::Error or std::bad_alloc if memory is short.
  ForwardResult Forward(const PackedBatch& batch, const at::Tensor& targets, double temperature,
                        Activations* saved) const;

  // Adds dLoss/dParameter to `gradients` (fp32), given d_log_probs = dLoss/dlog_probs [T] fp32.
  void Backward(const Activations& saved, const at::Tensor& d_log_probs,
                Gradients* gradients) const;

  // Runs forward, loss and backward of one batch with the least memory: computes the head's logits
  // once, and frees a layer's activations when its backward is done.
  //
  // Calls `loss` for runs of rows with a target, in ascending order. `rows` [R] int64 are their row
  // numbers in the batch; `loss` returns dLoss/dlog_probs [R] fp32.
  //
  // kOverwrite gives the same result as kAccumulate on zeros, whatever `gradients` held, and saves
  // the time to zero them. An exception leaves `gradients` undefined.
  //
  // Calls `ready_hook(offset)` with descending offsets, the first elements of the layout's parts,
  // the same for each batch: later work on the current stream does not change gradients->flat()
  // from `offset` on. Before that it calls `overwrite_hook` with the same offset, ahead of every
  // write to the part; the first such call is also ahead of a tied head's gradient. Gradients in a
  // ring buffer (gradient_ring_buffer.h) need kOverwrite, and the caller must copy final values out
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

  // Returns the logits [T, vocab] fp32 of every token, not divided by a temperature. For tests and
  // inspection of short batches.
  at::Tensor Logits(const PackedBatch& batch) const;

  // Runs one step of generation: computes slices of different sequences and writes their keys and
  // values to their pages; pages that slices share are only read. A token attends to all tokens of
  // its sequence up to itself. Returns the logits [sum of logit_rows(), vocab] fp32 in the order of
  // the slices, not divided by a temperature. On the CPU in fp32 a row's bits depend only on its
  // own sequence: not on other slices, the split into slices, pages or threads. Throws c10::Error
  // for slices that do not fit the model or the cache, or have no tokens.
  at::Tensor Step(absl::Span<const SequenceSlice> slices, PagedKvCache* cache) const;

  // Calls body(i) for each i in [0, n) on the num_threads() threads of the CPU kernels; see
  // CpuThreads.
  void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> body) const;
  int num_threads() const;

 private:
  struct Impl;

  // Runs Forward up to the head: returns the rows with a target after the final norm, or an
  // undefined tensor if there are none.
  at::Tensor HiddenRows(const PackedBatch& batch, const at::Tensor& targets, double temperature,
                        Activations* kept, bool save_layers) const;
  // Runs backward from the gradient of those rows, d_hidden, to all parameters except the head's.
  void BackwardLayers(Activations* saved, at::Tensor d_hidden, const BackwardMode& mode,
                      Gradients* gradients, ReadyHook ready_hook,
                      OverwriteHook overwrite_hook) const;

  // Runs the embedding and all layers; returns [T, C]. fp8: as in LayerEnvironment.
  at::Tensor RunLayers(const PackedBatch& batch, const SequenceLayout& layout, bool fp8,
                       std::vector<LayerActivations>* saved) const;

  ModelConfig config_;
  std::shared_ptr<Weights> weights_;
  std::vector<RecomputeSet> recompute_;  // one per layer; empty: none
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TRANSFORMER_H_
