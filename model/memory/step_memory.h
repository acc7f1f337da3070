// The memory that forward and backward of one batch hold on a GPU, computed operation by operation
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
  int64_t max_length = 0;       // tokens of the longest sequence, also in later batches; 0: the
                                // batch is one sequence
  int64_t element_bytes = 2;    // of weights and activations
  int64_t head_chunk_rows = 0;  // as in Transformer::Options
  bool deterministic = true;    // as in GpuOptions: attention's sums in a fixed order
  bool per_sequence = false;    // CudnnAttention::PerSequence
  bool fp8 = false;  // as fp8_projections in GpuOptions: GEMMs read FP8 copies of operands
  bool fp8_in_hardware = true;  // these copies hold 1 byte an element; else they keep its type
  // ForwardBackward, which frees activations as it goes; else Forward, then Backward.
  bool consume = true;
};

// Bytes that dropping the tensor of a layer frees, for the whole batch.
int64_t TensorBytes(const ModelConfig& config, const StepShape& step, LayerTensor tensor);
// Bytes of a layer's activations that are kept from forward to backward.
int64_t SavedActivationBytes(const ModelConfig& config, const StepShape& step,
                             RecomputeSet recompute);

struct StepPeak {
  int64_t bytes = 0;
  std::string where;  // in words: "the head", "layer 3's backward"
};

// The peak of the step's memory, without weights and gradients. `layers` holds one set a layer, or
// none if nothing is recomputed. Exact for tensors and GEMMs. The temporary memory of cuDNN's
// attention follows the sources of its front end: the fp32 sum of the queries' gradient, the
// gradients of keys and values for each query head, and with `deterministic` as much as
// DeterministicBackwardCalls allows. With `deterministic` or `per_sequence` it includes the copies
// of a sequence's operands, at the length that needs the most. Left out: partial sums of norms
// (some MiB), the sort of the embedding's gradient (some bytes a token), and the caller's loss.
StepPeak PeakStepMemory(const ModelConfig& config, const StepShape& step,
                        absl::Span<const RecomputeSet> layers);

// Bytes of the tensors that both passes make, under the names of LayerActivations.
struct LayerBytes {
  LayerBytes(const ModelConfig& config, const StepShape& step);

  // Bytes that dropping the tensor frees.
  int64_t Of(LayerTensor tensor) const;

  int64_t hidden, rstd, qkv, qk, qk_rstd, attention, lse, activated, gate_up;
};

// Bytes of the FP8 copies of a linear layer's operands x [T, k] and W [n, k]; 0 unless `takes`
// (SupportsFp8 of W, fp8.h).
struct Fp8CopyBytes {
  Fp8CopyBytes(const StepShape& step, bool takes, int64_t n, int64_t k);

  int64_t input = 0, weight = 0;
  int64_t d_out_both = 0;  // of d_out [T, n] for both GEMMs
  int64_t d_out = 0;       // the part of it that the second GEMM still needs
};

// Temporary memory of one call of cuDNN's backward with its copies of operands; PeakStepMemory
// lists its parts.
int64_t AttentionWorkspaceBytes(const ModelConfig& config, const StepShape& step);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_MEMORY_STEP_MEMORY_H_
