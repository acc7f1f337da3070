// Bytes of what a layer's passes hold for a whole batch.

#ifndef TRITONRL_MODEL_LAYER_BYTES_H_
#define TRITONRL_MODEL_LAYER_BYTES_H_

#include <cstdint>

#include "model/config.h"
#include "model/recompute.h"
#include "model/step_memory.h"

namespace tritonrl {

// The tensors that both passes make, under the names of LayerActivations.
struct LayerBytes {
  LayerBytes(const ModelConfig& config, const StepShape& step);

  // What dropping the tensor frees.
  int64_t Of(LayerTensor tensor) const;

  int64_t hidden, rstd, qkv, qk, qk_rstd, attention, lse, activated, gate_up;
};

// What the fp8 copies of one linear layer's operands take, x [T, k] and W [n, k]; nothing if its
// products run without (`takes`: whether fp8_linear.h takes W).
struct CopyBytes {
  CopyBytes(const StepShape& step, bool takes, int64_t n, int64_t k);

  int64_t input = 0, weight = 0;
  int64_t d_out_both = 0;  // of d_out [T, n] for both products
  int64_t d_out = 0;       // what stays of that for the second
};

// Temporary memory of one call of cuDNN's backward and what it has copied; see PeakOfStep for what
// it consists of.
int64_t AttentionRoom(const ModelConfig& config, const StepShape& step);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYER_BYTES_H_
