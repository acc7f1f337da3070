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

// The parameters of one layer or their gradients, as views of a ParameterBuffer.
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
  // Undefined in models without these biases (ModelConfig::qkv_bias, o_bias, mlp_bias).
  at::Tensor q_bias, k_bias, v_bias;  // [H D], [K D], [K D]
  at::Tensor o_bias;                  // [C]
  at::Tensor gate_bias, up_bias;      // [F]
  at::Tensor down_bias;               // [C]

  // Views of the same memory as one matrix each (Stacked, linear.h); undefined unless contiguous.
  at::Tensor qkv;      // [(H + 2K) D, C]
  at::Tensor gate_up;  // [2F, C]
};

// Inputs and settings that all layers of one pass share.
struct LayerEnvironment {
  const LayerContext& context;
  const ModelConfig& config;
  const RotaryTable& rotary;
  const at::Tensor& positions;  // [T] int64
  const SequenceLayout& layout;
  bool fp8 = false;  // GEMMs in FP8 where SupportsFp8 (fp8.h)
};

// Runs the layer on input [T, C] and returns the output [T, C]. Sets the tensors of *saved except
// those in saved->recompute.
at::Tensor DecoderLayerForward(const LayerEnvironment& environment,
                               const DecoderLayerParameters& weights, const at::Tensor& input,
                               LayerActivations* saved);

// Options of a backward pass.
struct BackwardMode {
  // Overwrites the gradients of matrices, which then need not be zeroed, instead of adding to them.
  // Gradients of norms are always added to.
  bool replace = false;
  // Overwrites activations, and frees each after its last use.
  bool consume = false;
};

// Replaces d [T, C], the gradient of the output, by that of the input in place. Adds the gradients
// of the parameters to *gradients, or overwrites them, see BackwardMode. Recomputes the tensors
// that *saved lacks with the forward's kernels, so that the gradients have the same bits; does not
// store them in *saved.
void DecoderLayerBackward(const LayerEnvironment& environment,
                          const DecoderLayerParameters& weights, const BackwardMode& mode,
                          LayerActivations* saved, at::Tensor d, DecoderLayerParameters* gradients);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_DECODER_LAYER_H_
