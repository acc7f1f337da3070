// What a forward pass keeps for the backward pass.

#ifndef TRITONRL_MODEL_ACTIVATIONS_H_
#define TRITONRL_MODEL_ACTIVATIONS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/attention.h"
#include "model/packed_batch.h"
#include "model/recompute.h"

namespace tritonrl {

// A matrix that products read, and its largest |x| where fp8 copies of it are wanted and what made
// it knew (see Quantize).
struct ProductInput {
  at::Tensor value, amax;
};

// T tokens, C hidden, H query heads, K key/value heads, D head dimension, F intermediate size. What
// `recompute` names is undefined once the layer's forward is done.
struct LayerActivations {
  RecomputeSet recompute;  // set before the forward

  at::Tensor input;        // [T, C] residual stream before the layer
  at::Tensor rstd1;        // [T] 1 / rms of input
  ProductInput normed1;    // [T, C] norm of input
  at::Tensor qkv;          // [T, (H + 2K) D] projections before query/key norm
  at::Tensor qk;           // [T, (H + K) D] queries and keys after norm and RoPE
  at::Tensor qk_rstd;      // [T, H + K] 1 / rms of each query and key head; undefined without norm
  at::Tensor attention;    // [T, H D] attention's output before o_proj
  at::Tensor lse;          // log-sum-exp of each softmax row, see attention.h
  at::Tensor middle;       // [T, C] residual stream between attention and MLP
  at::Tensor rstd2;        // [T]
  ProductInput normed2;    // [T, C] norm of middle
  at::Tensor gate_up;      // [T, 2F] gate, then up projection
  ProductInput activated;  // [T, F] silu(gate) * up
};

// The head works on the R rows that have a target.
struct HeadActivations {
  at::Tensor rows;     // [R] int64: row of the batch
  at::Tensor targets;  // [R] int64
  at::Tensor input;    // [R, C] residual stream after the last layer
  at::Tensor rstd;     // [R] of the final norm
  at::Tensor lse;      // [R] fp32 log-sum-exp of logits / temperature
  double temperature = 1.0;
};

struct Activations {
  PackedBatch batch;
  SequenceLayout layout;
  std::vector<LayerActivations> layers;
  HeadActivations head;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_ACTIVATIONS_H_
