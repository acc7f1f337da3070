// One decoder layer, forward and backward: h = x + attention(norm(x)), then h + mlp(norm(h)).

#ifndef TRITONRL_MODEL_LAYERS_DECODER_LAYER_H_
#define TRITONRL_MODEL_LAYERS_DECODER_LAYER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/layers/activations.h"
#include "model/layers/fp8.h"
#include "model/layers/layer_context.h"
#include "model/layers/linear.h"
#include "model/layers/rotary.h"
#include "model/weights/model_config.h"
#include "model/weights/weights.h"

namespace tritonrl {

// The parameters of one layer, or their gradients (views of a ParameterBuffer).
// C hidden, H query heads, K key/value heads, D head dimension, F intermediate size.
struct DecoderLayerParameters {
  DecoderLayerParameters(const ParameterBuffer& buffer, int64_t layer);

  at::Tensor input_norm;  // [C]
  at::Tensor q, k, v;     // [H D, C], [K D, C], [K D, C]
  at::Tensor q_norm;      // [D]; undefined in families without query/key norm
  at::Tensor k_norm;      // [D]
  at::Tensor o;           // [C, H D]
  at::Tensor post_norm;   // [C]
  at::Tensor gate, up;    // [F, C]
  at::Tensor down;        // [C, F]

  // The same memory as one matrix each (Stacked, linear.h); undefined unless contiguous.
  at::Tensor qkv;      // [(H + 2K) D, C]
  at::Tensor gate_up;  // [2F, C]
};

// What all layers of one pass share.
struct LayerEnvironment {
  const LayerContext& context;
  const ModelConfig& config;
  const RotaryTable& rotary;
  const at::Tensor& positions;  // [T] int64
  const SequenceLayout& layout;
  bool fp8 = false;  // GEMMs in FP8 where SupportsFp8 (fp8.h)
};

// input: [T, C]. Returns the output [T, C]. Fills *saved except the tensors in saved->recompute.
at::Tensor DecoderLayerForward(const LayerEnvironment& environment,
                               const DecoderLayerParameters& weights, const at::Tensor& input,
                               LayerActivations* saved);

// Options of a backward pass.
struct BackwardMode {
  // Gradients of matrices are written, not added to, and need not be zeroed. Those of norms are
  // always added to.
  bool replace = false;
  // Activations are overwritten and freed as soon as they have been used.
  bool consume = false;
};

// d: [T, C], the gradient of the output; becomes that of the input in place. Gradients of the
// parameters are added to *gradients, or written there, see BackwardMode. What *saved lacks is
// recomputed by the forward's own kernels, so that the gradients are the same bits; *saved
// does not get it.
void DecoderLayerBackward(const LayerEnvironment& environment,
                          const DecoderLayerParameters& weights, const BackwardMode& mode,
                          LayerActivations* saved, at::Tensor d, DecoderLayerParameters* gradients);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_DECODER_LAYER_H_
