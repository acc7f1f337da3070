// SwiGLU (Shazeer, 2020): out = silu(gate) * up, silu(x) = x / (1 + e^-x).

#ifndef TRITONRL_MODEL_LAYERS_SWIGLU_H_
#define TRITONRL_MODEL_LAYERS_SWIGLU_H_

#include <ATen/core/Tensor.h>

#include "model/layers/layer_context.h"

namespace tritonrl {

// Each amax, unless null, becomes the largest |x| of a result for Quantize (fp8.h). It stays
// undefined unless a CUDA kernel computes the result.

// gate_up: [T, 2F], gate in the first F columns. Returns [T, F].
at::Tensor SwigluForward(const LayerContext& context, const at::Tensor& gate_up,
                         at::Tensor* amax = nullptr);

// Overwrites d_out [T, F]. Returns d_gate_up [T, 2F], stored in gate_up's memory if in_place.
// Unless `out` is null, *out becomes the forward's output (possibly in d_out's memory). d_amax is
// that of d_gate_up, amax that of *out; pass amax only with `out`, and then both or neither.
at::Tensor SwigluBackward(const LayerContext& context, const at::Tensor& gate_up, bool in_place,
                          at::Tensor d_out, at::Tensor* out, at::Tensor* d_amax = nullptr,
                          at::Tensor* amax = nullptr);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_SWIGLU_H_
