#include "model/decoder_layer.h"

#include <string>
#include <utility>

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

// Each of these computes what the layer has not got, in the forward pass for the first time, in the
// backward pass again where it was dropped.

// Given rstd1, or the norm itself.
void EnsureQkv(const LayerEnvironment& e, const DecoderLayerParameters& w, at::Tensor normed,
               LayerActivations* saved) {
  if (saved->qkv.defined()) return;
  const at::Tensor& input = saved->input;
  if (!normed.defined()) normed = RmsNormAgain(e.context, input, w.input_norm, saved->rstd1);
  saved->qkv =
      e.context.Empty({input.size(0), e.config.query_size() + 2 * e.config.kv_size()}, input);
  Forward(e, normed, QkvSides(w), saved->qkv);
}

void EnsureHeads(const LayerEnvironment& e, const DecoderLayerParameters& w,
                 LayerActivations* saved) {
  EnsureQkv(e, w, {}, saved);
  if (saved->qk.defined()) return;
  saved->qk = HeadNormRotaryForward(e.context, e.config, saved->qkv, w.q_norm, w.k_norm, e.rotary,
                                    e.positions, &saved->qk_rstd);
}

void EnsureAttention(const LayerEnvironment& e, const DecoderLayerParameters& w,
                     LayerActivations* saved) {
  if (saved->attention.defined()) return;
  EnsureHeads(e, w, saved);
  saved->attention =
      AttentionForward(e.context, e.config, e.layout, saved->qk, saved->qkv, &saved->lse);
}

void EnsureMiddle(const LayerEnvironment& e, const DecoderLayerParameters& w,
                  LayerActivations* saved) {
  if (saved->middle.defined()) return;
  EnsureAttention(e, w, saved);
  saved->middle = LinearOnto(e.context, saved->input, saved->attention, w.o);
}

void EnsureGateUp(const LayerEnvironment& e, const DecoderLayerParameters& w,
                  const at::Tensor& normed, LayerActivations* saved) {
  if (saved->gate_up.defined()) return;
  saved->gate_up = e.context.Empty({normed.size(0), 2 * e.config.intermediate_size}, saved->middle);
  Forward(e, normed, GateUpSides(w), saved->gate_up);
}

// As soon as the forward pass needs it no more.
void DropIfRecomputed(LayerTensor tensor, LayerActivations* saved) {
  if (!saved->recompute.Has(tensor)) return;
  switch (tensor) {
    case LayerTensor::kRotatedHeads:
      saved->qk.reset();
      saved->qk_rstd.reset();
      break;
    case LayerTensor::kGateUp:
      saved->gate_up.reset();
      break;
    case LayerTensor::kMiddle:
      saved->middle.reset();
      break;
    case LayerTensor::kQkv:
      saved->qkv.reset();
      break;
    case LayerTensor::kAttention:
      saved->attention.reset();
      saved->lse.reset();
      break;
  }
}

// middle -> middle + down(silu(gate) * up) of its norm.
at::Tensor MlpForward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                      LayerActivations* saved) {
  at::Tensor normed =
      RmsNormForward(e.context, saved->middle, w.post_norm, e.config.rms_norm_eps, &saved->rstd2);
  EnsureGateUp(e, w, normed, saved);
  normed.reset();
  const at::Tensor activated = SwigluForward(e.context, saved->gate_up);
  DropIfRecomputed(LayerTensor::kGateUp, saved);
  at::Tensor out = LinearOnto(e.context, saved->middle, activated, w.down);
  DropIfRecomputed(LayerTensor::kMiddle, saved);
  return out;
}

// d [T, C]: gradient of the layer's output -> of middle. What is done with is freed from *now.
void MlpBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                 const BackwardMode& mode, LayerActivations* now, at::Tensor d,
                 DecoderLayerParameters* g) {
  const bool own = mode.consume || !now->gate_up.defined();
  EnsureMiddle(e, w, now);
  const auto norm = [&] { return RmsNormAgain(e.context, now->middle, w.post_norm, now->rstd2); };
  at::Tensor normed;
  if (!now->gate_up.defined()) normed = norm();
  EnsureGateUp(e, w, normed, now);
  at::Tensor d_activated = e.context.Empty({d.size(0), e.config.intermediate_size}, d);
  LinearBackwardInput(e.context, d, w.down, false, d_activated);
  at::Tensor activated;
  at::Tensor d_gate_up = SwigluBackward(e.context, now->gate_up, own, d_activated, &activated);
  now->gate_up.reset();
  LinearBackwardWeight(e.context, d, activated, !mode.replace, g->down);
  activated.reset();
  d_activated.reset();

  if (!normed.defined()) normed = norm();
  const at::Tensor d_normed = Backward(e, d_gate_up, normed, GateUpSides(w), mode, GateUpSides(*g));
  d_gate_up.reset();
  RmsNormBackward(e.context, now->middle, w.post_norm, now->rstd2, d_normed, d, g->post_norm);
  now->middle.reset();
}

// d [T, C]: gradient of middle -> of the layer's input. What is done with is freed from *now.
void AttentionPartBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                           const BackwardMode& mode, LayerActivations* now, at::Tensor d,
                           DecoderLayerParameters* g) {
  EnsureAttention(e, w, now);
  LinearBackwardWeight(e.context, d, now->attention, !mode.replace, g->o);
  EnsureHeads(e, w, now);
  at::Tensor d_attention = e.context.Empty(now->attention.sizes(), d);
  LinearBackwardInput(e.context, d, w.o, false, d_attention);
  at::Tensor d_qkv = e.context.Empty(now->qkv.sizes(), d);
  AttentionBackward(e.context, e.config, e.layout, now->qk, now->qkv, now->attention, now->lse,
                    d_attention, d_qkv);
  d_attention.reset();
  now->attention.reset();
  now->lse.reset();
  now->qk.reset();
  HeadNormRotaryBackward(e.context, e.config, now->qkv, now->qk_rstd, w.q_norm, w.k_norm, e.rotary,
                         e.positions, d_qkv, g->q_norm, g->k_norm);
  now->qkv.reset();

  const at::Tensor normed = RmsNormAgain(e.context, now->input, w.input_norm, now->rstd1);
  const at::Tensor d_normed = Backward(e, d_qkv, normed, QkvSides(w), mode, QkvSides(*g));
  RmsNormBackward(e.context, now->input, w.input_norm, now->rstd1, d_normed, d, g->input_norm);
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
  saved->input = input;
  EnsureQkv(e, w,
            RmsNormForward(e.context, input, w.input_norm, e.config.rms_norm_eps, &saved->rstd1),
            saved);
  EnsureAttention(e, w, saved);
  DropIfRecomputed(LayerTensor::kRotatedHeads, saved);
  DropIfRecomputed(LayerTensor::kQkv, saved);
  EnsureMiddle(e, w, saved);
  DropIfRecomputed(LayerTensor::kAttention, saved);
  return MlpForward(e, w, saved);
}

void DecoderLayerBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                          const BackwardMode& mode, LayerActivations* saved, at::Tensor d,
                          DecoderLayerParameters* g) {
  // Tensors, not their contents: what is computed again goes with it.
  LayerActivations now = mode.consume ? std::move(*saved) : *saved;
  MlpBackward(e, w, mode, &now, d, g);
  AttentionPartBackward(e, w, mode, &now, d, g);
}

}  // namespace tritonrl
