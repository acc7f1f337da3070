// SwiGLU (Shazeer, 2020): out = silu(gate) * up, silu(x) = x / (1 + e^-x).

#ifndef TRITONRL_MODEL_SWIGLU_H_
#define TRITONRL_MODEL_SWIGLU_H_

#include <ATen/core/Tensor.h>

#include "model/layer_context.h"

namespace tritonrl {

// gate_up: [T, 2F], gate in the first F columns. Returns [T, F].
at::Tensor SwigluForward(const LayerContext& context, const at::Tensor& gate_up);

// d_out: [T, F]. Returns d_gate_up [T, 2F], in gate_up's memory if in_place, and writes the
// forward's output, which the gradient of the next matrix needs, to *out again (memory of d_out may
// be used for it).
at::Tensor SwigluBackward(const LayerContext& context, const at::Tensor& gate_up, bool in_place,
                          at::Tensor d_out, at::Tensor* out);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_SWIGLU_H_
