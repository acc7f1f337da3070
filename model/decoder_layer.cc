#include "model/decoder_layer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "model/attention.h"
#include "model/linear.h"
#include "model/rms_norm.h"
#include "model/sides.h"
#include "model/swiglu.h"

namespace tritonrl {
namespace {

Sides QkvSides(const DecoderLayerParameters& w) { return {{w.q, w.k, w.v}, w.qkv}; }
Sides GateUpSides(const DecoderLayerParameters& w) { return {{w.gate, w.up}, w.gate_up}; }

// Products of the layer's norm with matrices side by side.
void Forward(const LayerEnvironment& e, const at::Tensor& normed, const Sides& weights,
             const at::Tensor& out) {
  SidesForward(e.context, normed, weights, Together(e.context, weights), out);
}
at::Tensor Backward(const LayerEnvironment& e, const at::Tensor& d_out, const at::Tensor& normed,
                    const Sides& weights, const BackwardMode& mode, const Sides& gradients) {
  const bool together = Together(e.context, weights) && gradients.all.defined();
  return SidesBackward(e.context, d_out, normed, weights, together, !mode.replace, gradients);
}

// middle -> middle + down(silu(gate) * up) of its norm.
at::Tensor MlpForward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                      LayerActivations* saved) {
  const at::Tensor& middle = saved->middle;
  const int64_t rows = middle.size(0), size = e.config.intermediate_size;
  const at::Tensor normed =
      RmsNormForward(e.context, middle, w.post_norm, e.config.rms_norm_eps, &saved->rstd2);
  saved->gate_up = e.context.Empty({rows, 2 * size}, middle);
  Forward(e, normed, GateUpSides(w), saved->gate_up);
  return LinearOnto(e.context, middle, SwigluForward(e.context, saved->gate_up), w.down);
}

// d [T, C]: gradient of the layer's output -> of middle.
void MlpBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                 const BackwardMode& mode, LayerActivations* saved, at::Tensor d,
                 DecoderLayerParameters* g) {
  const int64_t rows = d.size(0), size = e.config.intermediate_size;
  at::Tensor d_activated = e.context.Empty({rows, size}, d);
  LinearBackwardInput(e.context, d, w.down, false, d_activated);
  at::Tensor activated;
  const at::Tensor d_gate_up =
      SwigluBackward(e.context, saved->gate_up, mode.consume, d_activated, &activated);
  if (mode.consume) saved->gate_up.reset();
  LinearBackwardWeight(e.context, d, activated, !mode.replace, g->down);
  activated.reset();
  d_activated.reset();

  const at::Tensor normed = RmsNormAgain(e.context, saved->middle, w.post_norm, saved->rstd2);
  const at::Tensor d_normed = Backward(e, d_gate_up, normed, GateUpSides(w), mode, GateUpSides(*g));
  RmsNormBackward(e.context, saved->middle, w.post_norm, saved->rstd2, d_normed, d, g->post_norm);
  if (mode.consume) saved->middle.reset();
}

}  // namespace

DecoderLayerParameters::DecoderLayerParameters(const ParameterBuffer& buffer, int64_t layer) {
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  auto get = [&](const char* name) { return buffer.Get(absl::StrCat(prefix, name, ".weight")); };
  input_norm = get("input_layernorm");
  q = get("self_attn.q_proj");
  k = get("self_attn.k_proj");
  v = get("self_attn.v_proj");
  if (buffer.config().qk_norm()) {
    q_norm = get("self_attn.q_norm");
    k_norm = get("self_attn.k_norm");
  }
  o = get("self_attn.o_proj");
  post_norm = get("post_attention_layernorm");
  gate = get("mlp.gate_proj");
  up = get("mlp.up_proj");
  down = get("mlp.down_proj");
  qkv = Stacked(buffer.flat(), {q, k, v});
  gate_up = Stacked(buffer.flat(), {gate, up});
}

at::Tensor DecoderLayerForward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                               const at::Tensor& input, LayerActivations* saved) {
  const int64_t rows = input.size(0), q_size = e.config.query_size(), kv_size = e.config.kv_size();
  saved->input = input;
  const at::Tensor normed =
      RmsNormForward(e.context, input, w.input_norm, e.config.rms_norm_eps, &saved->rstd1);
  saved->qkv = e.context.Empty({rows, q_size + 2 * kv_size}, input);
  Forward(e, normed, QkvSides(w), saved->qkv);
  saved->qk = HeadNormRotaryForward(e.context, e.config, saved->qkv, w.q_norm, w.k_norm, e.rotary,
                                    e.positions, &saved->qk_rstd);
  saved->attention =
      AttentionForward(e.context, e.config, e.layout, saved->qk, saved->qkv, &saved->lse);
  saved->middle = LinearOnto(e.context, input, saved->attention, w.o);
  return MlpForward(e, w, saved);
}

void DecoderLayerBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                          const BackwardMode& mode, LayerActivations* saved, at::Tensor d,
                          DecoderLayerParameters* g) {
  MlpBackward(e, w, mode, saved, d, g);

  LinearBackwardWeight(e.context, d, saved->attention, !mode.replace, g->o);
  at::Tensor d_attention = e.context.Empty(saved->attention.sizes(), d);
  LinearBackwardInput(e.context, d, w.o, false, d_attention);
  at::Tensor d_qkv = e.context.Empty(saved->qkv.sizes(), d);
  AttentionBackward(e.context, e.config, e.layout, saved->qk, saved->qkv, saved->attention,
                    saved->lse, d_attention, d_qkv);
  HeadNormRotaryBackward(e.context, e.config, saved->qkv, saved->qk_rstd, w.q_norm, w.k_norm,
                         e.rotary, e.positions, d_qkv, g->q_norm, g->k_norm);

  const at::Tensor normed = RmsNormAgain(e.context, saved->input, w.input_norm, saved->rstd1);
  const at::Tensor d_normed = Backward(e, d_qkv, normed, QkvSides(w), mode, QkvSides(*g));
  RmsNormBackward(e.context, saved->input, w.input_norm, saved->rstd1, d_normed, d, g->input_norm);
  if (mode.consume) *saved = LayerActivations();
}

}  // namespace tritonrl
