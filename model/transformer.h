// Decoder-only transformer (Qwen3 and Llama families): forward, explicit backward, decoding.
//
// No autograd: each layer's backward is written out beside its forward. On the CPU in fp32
// hand-written kernels run whose results depend neither on the number of threads nor on what else
// is in the batch; on a GPU in fp32 and bf16 what model/cuda has; everything else through ATen.

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

class Transformer {
 public:
  struct Options {
    // Threads for CPU kernels; 0 means all hardware threads. Does not change results.
    int cpu_threads = 0;
    // Rows of logits that the head holds at a time; 0: see HeadSettings.
    int64_t head_chunk_rows = 0;
    // Runs everything through ATen even where CPU kernels exist (to compare the two).
    bool force_aten = false;
    // gpu.fp8_projections concerns Forward and what trains: Step and Logits do without.
    GpuOptions gpu;
    // The weights are one rank's part (weight_shard.h), and Step, which alone can be called then,
    // sums what parts of the model give over these ranks. Through ATen; a row's bits then depend on
    // the other rows.
    StreamCollectives* ranks = nullptr;
  };

  // `weights` is shared: changes by the optimizer are seen by the next call.
  Transformer(const ModelConfig& config, std::shared_ptr<Weights> weights, const Options& options);
  Transformer(const ModelConfig& config, std::shared_ptr<Weights> weights);
  ~Transformer();

  const ModelConfig& config() const { return config_; }
  const std::shared_ptr<Weights>& weights() const { return weights_; }
  const Options& options() const;

  // What each layer of the next saved passes drops (see memory_plan.h, which chooses): one set a
  // layer, or none at all for nothing, as at first. Changes no result. May differ from one batch to
  // the next, but not while a pass runs.
  void set_recompute(std::vector<RecomputeSet> layers);

  // targets: [T] int64, -1 = none (the head is not computed there). temperature > 0.
  // saved: what Backward needs, or null. Out of memory throws c10::Error or std::bad_alloc.
  ForwardResult Forward(const PackedBatch& batch, const at::Tensor& targets, double temperature,
                        Activations* saved) const;

  // Adds dLoss/dParameter to `gradients` (fp32), given d_log_probs = dLoss/dlog_probs [T] fp32.
  void Backward(const Activations& saved, const at::Tensor& d_log_probs,
                Gradients* gradients) const;

  // Forward, loss and backward of one batch, in which nothing is computed or held longer than it
  // must be: the head's logits once, a layer's activations until its backward is done. `loss` is
  // called for runs of rows that have a target, in rising order: `rows` [R] int64 are their
  // places in the batch; it returns dLoss/dlog_probs [R] fp32. kOverwrite: the same as kAccumulate
  // to zeros, whatever `gradients` held, without the time to write and read these zeros. An
  // exception leaves `gradients` undefined. `ready_hook(offset)` is called with falling offsets,
  // the same for any batch (where the layout's parts begin): what lies from there on in
  // gradients->flat() is not changed any more by what the current stream is given later. Before
  // each, `overwrite_hook` is called with the same offset, ahead of anything that writes there; the
  // first time also ahead of a tied head's gradient. Gradients in a window that shares memory
  // (gradient_window.h) can only be replaced, and what is final must have been taken away when that
  // memory's turn comes again.
  enum class GradientWrite { kAccumulate, kOverwrite };
  using ReadyHook = absl::FunctionRef<void(int64_t offset)>;
  using OverwriteHook = absl::FunctionRef<void(int64_t offset)>;
  using TokenLoss = absl::FunctionRef<at::Tensor(
      const at::Tensor& rows, const at::Tensor& log_probs, const at::Tensor& entropy)>;
  ForwardResult ForwardBackward(
      const PackedBatch& batch, const at::Tensor& targets, double temperature, TokenLoss loss,
      GradientWrite sum, Gradients* gradients, ReadyHook ready_hook = [](int64_t) {},
      OverwriteHook overwrite_hook = [](int64_t) {}) const;

  // Logits [T, vocab] fp32 of every token, unscaled: for tests and inspection of short batches.
  at::Tensor Logits(const PackedBatch& batch) const;

  // One step of generation: computes the slices, which are of different sequences, and writes their
  // keys and values to their pages (pages in common are only read). A token sees all tokens of its
  // sequence up to itself. Returns the logits [rows asked for, vocab] fp32, unscaled, in the order
  // of the slices. On the CPU in fp32 a row's bits depend on its own sequence alone: not on other
  // slices, on how the sequence was cut into slices, on pages or threads. Throws c10::Error for
  // slices that do not fit the model or the cache, or without tokens.
  at::Tensor Step(absl::Span<const SequenceSlice> slices, PagedKvCache* cache) const;

  // Calls body(i) for each i in [0, n) on the threads of the CPU kernels; see CpuThreads.
  void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> body) const;
  // Threads that take part in it.
  int num_threads() const;

 private:
  struct Impl;

  // The layers' share of Forward: their output's rows with a target, after the final norm.
  // Undefined if no row has one.
  at::Tensor HiddenRows(const PackedBatch& batch, const at::Tensor& targets, double temperature,
                        Activations* kept, bool save_layers) const;
  // From the gradient of those rows to all parameters but the head's.
  void BackwardLayers(Activations* saved, at::Tensor d_hidden, const BackwardMode& mode,
                      Gradients* gradients, ReadyHook ready_hook,
                      OverwriteHook overwrite_hook) const;

  // Embedding and all layers. Returns [T, C]. fp8: as in LayerEnvironment.
  at::Tensor RunLayers(const PackedBatch& batch, const SequenceLayout& layout, bool fp8,
                       std::vector<LayerActivations>* saved) const;

  ModelConfig config_;
  std::shared_ptr<Weights> weights_;
  std::vector<RecomputeSet> recompute_;  // of each layer; empty: nothing
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TRANSFORMER_H_
