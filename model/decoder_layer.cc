#include "model/decoder_layer.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/attention.h"
#include "model/layer_products.h"
#include "model/rms_norm.h"
#include "model/sides.h"
#include "model/swiglu.h"

namespace tritonrl {
namespace {

Sides QkvSides(const DecoderLayerParameters& w) { return {{w.q, w.k, w.v}, w.qkv}; }
Sides GateUpSides(const DecoderLayerParameters& w) { return {{w.gate, w.up}, w.gate_up}; }

LayerProducts Products(const LayerEnvironment& e) { return {e.context, e.fp8}; }

at::Tensor* AmaxOf(const LayerEnvironment& e, ProductInput* x) {
  return e.fp8 ? &x->amax : nullptr;
}

ProductInput Norm(const LayerEnvironment& e, const at::Tensor& x, const at::Tensor& weight,
                  at::Tensor* rstd) {
  ProductInput y;
  y.value = RmsNormForward(e.context, x, weight, e.config.rms_norm_eps, rstd, AmaxOf(e, &y));
  return y;
}
// The norm that a layer kept, or the same again.
ProductInput NormOf(const LayerEnvironment& e, const ProductInput& kept, const at::Tensor& x,
                    const at::Tensor& weight, const at::Tensor& rstd) {
  if (kept.value.defined()) return kept;
  ProductInput y;
  y.value = RmsNormAgain(e.context, x, weight, rstd, AmaxOf(e, &y));
  return y;
}

// Each of these computes what the layer has not got, in the forward pass for the first time, in the
// backward pass again where it was dropped.

ProductInput FirstNorm(const LayerEnvironment& e, const DecoderLayerParameters& w,
                       const LayerActivations& saved) {
  return NormOf(e, saved.normed1, saved.input, w.input_norm, saved.rstd1);
}

void EnsureQkv(const LayerEnvironment& e, const DecoderLayerParameters& w,
               LayerActivations* saved) {
  if (saved->qkv.defined()) return;
  const at::Tensor& input = saved->input;
  const ProductInput normed = FirstNorm(e, w, *saved);
  saved->qkv =
      e.context.Empty({input.size(0), e.config.query_size() + 2 * e.config.kv_size()}, input);
  Products(e).Forward(normed, QkvSides(w), saved->qkv);
}

void EnsureHeads(const LayerEnvironment& e, const DecoderLayerParameters& w,
                 LayerActivations* saved) {
  EnsureQkv(e, w, saved);
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
  saved->middle = Products(e).Onto(saved->input, {saved->attention, {}}, w.o);
}

void EnsureGateUp(const LayerEnvironment& e, const DecoderLayerParameters& w,
                  const ProductInput& normed, LayerActivations* saved) {
  if (saved->gate_up.defined()) return;
  saved->gate_up =
      e.context.Empty({saved->middle.size(0), 2 * e.config.intermediate_size}, saved->middle);
  Products(e).Forward(normed, GateUpSides(w), saved->gate_up);
}

// As soon as the forward pass needs it no more.
void DropIfRecomputed(LayerTensor tensor, LayerActivations* saved) {
  if (!saved->recompute.Has(tensor)) return;
  switch (tensor) {
    case LayerTensor::kActivated:
      saved->activated = {};
      break;
    case LayerTensor::kNorms:
      saved->normed1 = saved->normed2 = {};
      break;
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
  saved->normed2 = Norm(e, saved->middle, w.post_norm, &saved->rstd2);
  EnsureGateUp(e, w, saved->normed2, saved);
  DropIfRecomputed(LayerTensor::kNorms, saved);
  ProductInput& activated = saved->activated;
  activated.value = SwigluForward(e.context, saved->gate_up, AmaxOf(e, &activated));
  DropIfRecomputed(LayerTensor::kGateUp, saved);
  at::Tensor out = Products(e).Onto(saved->middle, activated, w.down);
  DropIfRecomputed(LayerTensor::kMiddle, saved);
  DropIfRecomputed(LayerTensor::kActivated, saved);
  return out;
}

// d [T, C]: gradient of the layer's output -> of middle, with which it returns. What is done with
// is freed from *now.
ProductInput MlpBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                         const BackwardMode& mode, LayerActivations* now, at::Tensor d,
                         DecoderLayerParameters* g) {
  const bool own = mode.consume || !now->gate_up.defined();
  EnsureMiddle(e, w, now);
  const auto norm = [&] {
    return NormOf(e, std::exchange(now->normed2, {}), now->middle, w.post_norm, now->rstd2);
  };
  ProductInput normed;
  if (!now->gate_up.defined()) normed = norm();
  EnsureGateUp(e, w, normed, now);
  AddedGradient added(Products(e), {d, {}}, w.down);
  at::Tensor d_activated = e.context.Empty({d.size(0), e.config.intermediate_size}, d);
  added.Input(d_activated);
  ProductInput activated = std::exchange(now->activated, {}), d_gate_up;
  const bool again = !activated.value.defined();
  d_gate_up.value =
      SwigluBackward(e.context, now->gate_up, own, d_activated, again ? &activated.value : nullptr,
                     AmaxOf(e, &d_gate_up), again ? AmaxOf(e, &activated) : nullptr);
  now->gate_up.reset();
  d_activated.reset();
  added.Weight(activated, !mode.replace, g->down);
  activated.value.reset();

  if (!normed.value.defined()) normed = norm();
  const at::Tensor d_normed = Products(e).Backward(std::move(d_gate_up), normed, GateUpSides(w),
                                                   !mode.replace, GateUpSides(*g));
  ProductInput d_middle = {d, {}};
  RmsNormBackward(e.context, now->middle, w.post_norm, now->rstd2, d_normed, d, g->post_norm,
                  AmaxOf(e, &d_middle));
  now->middle.reset();
  return d_middle;
}

// d [T, C]: gradient of middle -> of the layer's input. What is done with is freed from *now.
void AttentionPartBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                           const BackwardMode& mode, LayerActivations* now, const ProductInput& d,
                           DecoderLayerParameters* g) {
  EnsureAttention(e, w, now);
  AddedGradient added(Products(e), d, w.o);
  added.Weight({now->attention, {}}, !mode.replace, g->o);
  EnsureHeads(e, w, now);
  at::Tensor d_attention = e.context.Empty(now->attention.sizes(), d.value);
  added.Input(d_attention);
  at::Tensor d_qkv = e.context.Empty(now->qkv.sizes(), d.value);
  AttentionBackward(e.context, e.config, e.layout, now->qk, now->qkv, now->attention, now->lse,
                    d_attention, d_qkv);
  d_attention.reset();
  now->attention.reset();
  now->lse.reset();
  now->qk.reset();
  HeadNormRotaryBackward(e.context, e.config, now->qkv, now->qk_rstd, w.q_norm, w.k_norm, e.rotary,
                         e.positions, d_qkv, g->q_norm, g->k_norm);
  now->qkv.reset();
  now->qk_rstd.reset();

  const ProductInput normed = FirstNorm(e, w, *now);
  const at::Tensor d_normed = Products(e).Backward({std::move(d_qkv), {}}, normed, QkvSides(w),
                                                   !mode.replace, QkvSides(*g));
  RmsNormBackward(e.context, now->input, w.input_norm, now->rstd1, d_normed, d.value,
                  g->input_norm);
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
  saved->normed1 = Norm(e, input, w.input_norm, &saved->rstd1);
  EnsureQkv(e, w, saved);
  DropIfRecomputed(LayerTensor::kNorms, saved);
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
  const ProductInput d_middle = MlpBackward(e, w, mode, &now, std::move(d), g);
  AttentionPartBackward(e, w, mode, &now, d_middle, g);
}

}  // namespace tritonrl
