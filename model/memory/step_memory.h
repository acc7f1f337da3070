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

// What a step's memory depends on besides the model.
struct StepShape {
  int64_t tokens = 0;           // of the batch
  int64_t target_rows = 0;      // tokens with a target; 0: all
  int64_t max_length = 0;       // tokens of the longest sequence; 0: the batch is one sequence.
                                // Of batches to come, the longest that there can be.
  int64_t element_bytes = 2;    // of weights and activations
  int64_t head_chunk_rows = 0;  // as in Transformer::Options
  bool deterministic = true;    // as in GpuOptions: attention's sums in a fixed order
  bool per_sequence = false;    // CudnnAttention::PerSequence
  bool fp8 = false;             // as fp8_projections in GpuOptions: GEMMs take copies of operands
  bool fp8_in_hardware = true;  // these copies hold 1 byte an element; else they keep its type
  // ForwardBackward, which frees activations as it goes; else Forward, then Backward.
  bool consume = true;
};

// Bytes of a layer's activations for the whole batch that dropping the tensor frees.
int64_t TensorBytes(const ModelConfig& config, const StepShape& step, LayerTensor tensor);
// Bytes of a layer's activations that stay from forward to backward.
int64_t SavedActivationBytes(const ModelConfig& config, const StepShape& step,
                             RecomputeSet recompute);

struct StepPeak {
  int64_t bytes = 0;
  std::string where;  // in words: "the head", "layer 3's backward"
};

// The most that is held at once, without weights and gradients. `layers` holds one set a layer, or
// none for nothing recomputed. Exact for tensors and GEMMs. For cuDNN's attention the
// temporary memory is taken from its front end's sources: the sum of the queries' gradient in fp32,
// the gradients of keys and values for each query head, and with `deterministic` as much as
// DeterministicBackwardCalls allows; with `deterministic` or `per_sequence` also the copies of a
// sequence's operands, of the length that takes the most. Left out: partial sums of norms (some
// MiB), the sort of the embedding's gradient (some bytes a token), and what the caller's loss
// takes.
StepPeak PeakStepMemory(const ModelConfig& config, const StepShape& step,
                        absl::Span<const RecomputeSet> layers);

// The tensors that both passes make, under the names of LayerActivations.
struct LayerBytes {
  LayerBytes(const ModelConfig& config, const StepShape& step);

  // What dropping the tensor frees.
  int64_t Of(LayerTensor tensor) const;

  int64_t hidden, rstd, qkv, qk, qk_rstd, attention, lse, activated, gate_up;
};

// Bytes of the FP8 copies of a linear layer's operands x [T, k] and W [n, k]; 0 unless `takes`
// (SupportsFp8 of W, fp8.h).
struct Fp8CopyBytes {
  Fp8CopyBytes(const StepShape& step, bool takes, int64_t n, int64_t k);

  int64_t input = 0, weight = 0;
  int64_t d_out_both = 0;  // of d_out [T, n] for both GEMMs
  int64_t d_out = 0;       // what stays of that for the second
};

// Temporary memory of one call of cuDNN's backward and what it has copied; see PeakStepMemory for
// what it consists of.
int64_t AttentionWorkspaceBytes(const ModelConfig& config, const StepShape& step);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_MEMORY_STEP_MEMORY_H_
