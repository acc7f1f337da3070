// Computes the memory that forward and backward of one batch hold on a GPU, operation by operation
// in the order in which transformer.cc, decoder_layer.cc and lm_head.cc allocate and free.

#ifndef TRITONRL_MODEL_MEMORY_STEP_MEMORY_H_
#define TRITONRL_MODEL_MEMORY_STEP_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "model/layers/activations.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// The properties of a step, besides the model, on which its memory depends.
struct StepShape {
  int64_t tokens = 0;           // of the batch
  int64_t target_rows = 0;      // tokens with a target; 0: all
  int64_t max_length = 0;       // tokens of the longest sequence of this and later batches; 0: the
                                // batch is one sequence
  int64_t element_bytes = 2;    // of weights and activations
  int64_t head_chunk_rows = 0;  // as in Transformer::Options
  bool deterministic = true;    // as in GpuOptions: attention's sums have a fixed order
  bool per_sequence = false;    // CudnnAttention::PerSequence
  bool fp8 = false;             // GpuOptions::fp8_projections: GEMMs read FP8 copies of operands
  bool fp8_in_hardware = true;  // true: these copies have 1 byte per element; false: element_bytes
  // true: ForwardBackward, which frees activations in its backward pass. false: Forward, then
  // Backward.
  bool consume = true;
};

// Returns the bytes that dropping `tensor` in one layer frees, for the whole batch.
int64_t TensorBytes(const ModelConfig& config, const StepShape& step, LayerTensor tensor);
// Returns the bytes of one layer's activations that are kept from forward to backward.
int64_t SavedActivationBytes(const ModelConfig& config, const StepShape& step,
                             RecomputeSet recompute);

struct StepPeak {
  int64_t bytes = 0;
  std::string where;  // the operation in words: "the head", "layer 3's backward"
};

// Returns the peak of the step's memory without weights and gradients. `layers` holds one set per
// layer, or is empty if nothing is recomputed. The peak is exact for tensors and GEMMs. The
// temporary memory of cuDNN's attention follows the sources of its front end: the fp32 sum of the
// queries' gradient, the gradients of keys and values for each query head, and with `deterministic`
// the memory that DeterministicBackwardCalls allows. With `deterministic` or `per_sequence` the
// peak includes the copies of a sequence's operands, at the length that needs the most. Not
// included: partial sums of norms (some MiB), the sort of the embedding's gradient (some bytes per
// token), and the caller's loss.
StepPeak PeakStepMemory(const ModelConfig& config, const StepShape& step,
                        absl::Span<const RecomputeSet> layers);

// Bytes of one layer's tensors in the forward and the backward pass, with the names of
// LayerActivations.
struct LayerBytes {
  LayerBytes(const ModelConfig& config, const StepShape& step);

  // Returns the bytes that dropping `tensor` frees.
  int64_t Of(LayerTensor tensor) const;

  int64_t hidden, rstd, qkv, qk, qk_rstd, attention, lse, activated, gate_up;
};

// Bytes of the FP8 copies of a linear layer's operands x [T, k] and W [n, k]. All are 0 unless
// step.fp8 and `takes` (SupportsFp8 of W, fp8.h).
struct Fp8CopyBytes {
  Fp8CopyBytes(const StepShape& step, bool takes, int64_t n, int64_t k);

  int64_t input = 0, weight = 0;
  int64_t d_out_both = 0;  // copies of d_out [T, n] for both GEMMs of the backward
  int64_t d_out = 0;       // the part of d_out_both that the second GEMM needs
};

// Returns the temporary memory of one call of cuDNN's attention backward, including the copies of
// its operands. PeakStepMemory lists the parts.
int64_t AttentionWorkspaceBytes(const ModelConfig& config, const StepShape& step);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_MEMORY_STEP_MEMORY_H_
