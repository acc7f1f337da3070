#include "model/layers/decoder_layer.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/layers/attention.h"
#include "model/layers/bias.h"
#include "model/layers/fp8.h"
#include "model/layers/linear.h"
#include "model/layers/rms_norm.h"
#include "model/layers/swiglu.h"

namespace tritonrl {

namespace {

bool UsesFp8(const LayerEnvironment& e, const FusedWeights& weights) {
  return e.fp8 && SupportsFp8(weights);
}

// out [T, N] = x W^T, where W is the concatenation of `weights`.
void Project(const LayerEnvironment& e, const GemmInput& x, const FusedWeights& weights,
             const at::Tensor& out) {
  if (UsesFp8(e, weights)) return Fp8Forward(e.context, x.value, x.amax, weights, out);
  FusedLinearForward(e.context, x.value, weights, out);
}

// Returns the gradient of x [T, K], given d_out [T, N], which it frees as soon as the FP8 copies
// exist. Adds to the gradients of the weights, or overwrites them if not `accumulate`.
at::Tensor ProjectBackward(const LayerEnvironment& e, GemmInput d_out, const GemmInput& x,
                           const FusedWeights& weights, bool accumulate,
                           const FusedWeights& gradients) {
  if (!UsesFp8(e, weights)) {
    return FusedLinearBackward(e.context, d_out.value, x.value, weights, accumulate, gradients);
  }
  Fp8Matrix d = Fp8Gradient(e.context, d_out.value, d_out.amax);
  d_out.value.reset();
  Fp8BackwardWeight(e.context, &d, x.value, x.amax, accumulate, gradients);
  at::Tensor d_x = e.context.Empty(x.value.sizes(), x.value);
  Fp8BackwardInput(e.context, &d, weights, d_x);
  return d_x;
}

// Returns residual + x W^T [T, N]: adds attention's or the MLP's output to the residual stream.
at::Tensor ResidualAdd(const LayerEnvironment& e, const at::Tensor& residual, const GemmInput& x,
                       const at::Tensor& weight) {
  if (UsesFp8(e, {{weight}, weight})) {
    return Fp8ResidualAdd(e.context, residual, x.value, x.amax, weight);
  }
  return LinearResidualAdd(e.context, residual, x.value, weight);
}

// The gradient d [T, N] of ResidualAdd's result, for the two GEMMs of the backward pass. Each
// method is called once.
class ResidualAddGradient {
 public:
  ResidualAddGradient(const LayerEnvironment& e, const GemmInput& d, const at::Tensor& weight)
      : context_(e.context), d_(d.value), weight_({{weight}, weight}), fp8_(UsesFp8(e, weight_)) {
    if (fp8_) copies_ = Fp8Gradient(context_, d.value, d.amax);
  }

  // Writes the gradient of x [T, K].
  void Input(const at::Tensor& d_x) {
    if (fp8_) return Fp8BackwardInput(context_, &copies_, weight_, d_x);
    LinearBackwardInput(context_, d_, weight_.fused, false, d_x);
  }

  // Adds the gradient of the weight [N, K] to `gradient`, or overwrites it.
  void Weight(const GemmInput& x, bool accumulate, const at::Tensor& gradient) {
    if (fp8_) {
      return Fp8BackwardWeight(context_, &copies_, x.value, x.amax, accumulate,
                               {{gradient}, gradient});
    }
    LinearBackwardWeight(context_, d_, x.value, accumulate, gradient);
  }

 private:
  const LayerContext& context_;
  const at::Tensor d_;
  const FusedWeights weight_;
  const bool fp8_;
  Fp8Matrix copies_;
};

FusedWeights QkvWeights(const DecoderLayerParameters& w) { return {{w.q, w.k, w.v}, w.qkv}; }
FusedWeights GateUpWeights(const DecoderLayerParameters& w) { return {{w.gate, w.up}, w.gate_up}; }

at::Tensor* AmaxOf(const LayerEnvironment& e, GemmInput* x) { return e.fp8 ? &x->amax : nullptr; }

GemmInput Norm(const LayerEnvironment& e, const at::Tensor& x, const at::Tensor& weight,
               at::Tensor* rstd) {
  GemmInput y;
  y.value = RmsNormForward(e.context, x, weight, e.config.rms_norm_eps, rstd, AmaxOf(e, &y));
  return y;
}
// Returns the norm that a layer kept, or recomputes it with the same bits.
GemmInput SavedOrRecomputedNorm(const LayerEnvironment& e, const GemmInput& kept,
                                const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& rstd) {
  if (kept.value.defined()) return kept;
  GemmInput y;
  y.value = RecomputeRmsNorm(e.context, x, weight, rstd, AmaxOf(e, &y));
  return y;
}

// FirstNorm and the Ensure functions compute an activation that *saved lacks: for the first time in
// the forward pass, again in the backward pass if it was dropped.

GemmInput FirstNorm(const LayerEnvironment& e, const DecoderLayerParameters& w,
                    const LayerActivations& saved) {
  return SavedOrRecomputedNorm(e, saved.normed1, saved.input, w.input_norm, saved.rstd1);
}

void EnsureQkv(const LayerEnvironment& e, const DecoderLayerParameters& w,
               LayerActivations* saved) {
  if (saved->qkv.defined()) return;
  const at::Tensor& input = saved->input;
  const GemmInput normed = FirstNorm(e, w, *saved);
  saved->qkv =
      e.context.Empty({input.size(0), e.config.query_size() + 2 * e.config.kv_size()}, input);
  Project(e, normed, QkvWeights(w), saved->qkv);
  BiasForward(e.context, {w.q_bias, w.k_bias, w.v_bias}, saved->qkv);
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

void EnsurePostAttention(const LayerEnvironment& e, const DecoderLayerParameters& w,
                         LayerActivations* saved) {
  if (saved->post_attention.defined()) return;
  EnsureAttention(e, w, saved);
  saved->post_attention = ResidualAdd(e, saved->input, {saved->attention, {}}, w.o);
  BiasForward(e.context, {w.o_bias}, saved->post_attention);
}

void EnsureGateUp(const LayerEnvironment& e, const DecoderLayerParameters& w,
                  const GemmInput& normed, LayerActivations* saved) {
  if (saved->gate_up.defined()) return;
  saved->gate_up = e.context.Empty({saved->post_attention.size(0), 2 * e.config.intermediate_size},
                                   saved->post_attention);
  Project(e, normed, GateUpWeights(w), saved->gate_up);
  BiasForward(e.context, {w.gate_bias, w.up_bias}, saved->gate_up);
}

// Called after the forward pass's last use of the tensor.
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
    case LayerTensor::kPostAttention:
      saved->post_attention.reset();
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

// Returns post_attention + down(silu(gate) * up), where gate and up read post_attention's norm.
at::Tensor MlpForward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                      LayerActivations* saved) {
  saved->normed2 = Norm(e, saved->post_attention, w.post_norm, &saved->rstd2);
  EnsureGateUp(e, w, saved->normed2, saved);
  DropIfRecomputed(LayerTensor::kNorms, saved);
  GemmInput& activated = saved->activated;
  activated.value = SwigluForward(e.context, saved->gate_up, AmaxOf(e, &activated));
  DropIfRecomputed(LayerTensor::kGateUp, saved);
  at::Tensor out = ResidualAdd(e, saved->post_attention, activated, w.down);
  BiasForward(e.context, {w.down_bias}, out);
  DropIfRecomputed(LayerTensor::kPostAttention, saved);
  DropIfRecomputed(LayerTensor::kActivated, saved);
  return out;
}

// Turns d [T, C], the gradient of the layer's output, into that of post_attention in place and
// returns it. Frees each activation in *live after its last use.
GemmInput MlpBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                      const BackwardMode& mode, LayerActivations* live, at::Tensor d,
                      DecoderLayerParameters* g) {
  const bool own = mode.consume || !live->gate_up.defined();
  EnsurePostAttention(e, w, live);
  const auto norm = [&] {
    return SavedOrRecomputedNorm(e, std::exchange(live->normed2, {}), live->post_attention,
                                 w.post_norm, live->rstd2);
  };
  GemmInput normed;
  if (!live->gate_up.defined()) normed = norm();
  EnsureGateUp(e, w, normed, live);
  BiasBackward(e.context, d, {g->down_bias});
  ResidualAddGradient residual_add(e, {d, {}}, w.down);
  at::Tensor d_activated = e.context.Empty({d.size(0), e.config.intermediate_size}, d);
  residual_add.Input(d_activated);
  GemmInput activated = std::exchange(live->activated, {}), d_gate_up;
  const bool recompute = !activated.value.defined();
  d_gate_up.value = SwigluBackward(e.context, live->gate_up, own, d_activated,
                                   recompute ? &activated.value : nullptr, AmaxOf(e, &d_gate_up),
                                   recompute ? AmaxOf(e, &activated) : nullptr);
  live->gate_up.reset();
  d_activated.reset();
  BiasBackward(e.context, d_gate_up.value, {g->gate_bias, g->up_bias});
  residual_add.Weight(activated, !mode.replace, g->down);
  activated.value.reset();

  if (!normed.value.defined()) normed = norm();
  const at::Tensor d_normed = ProjectBackward(e, std::move(d_gate_up), normed, GateUpWeights(w),
                                              !mode.replace, GateUpWeights(*g));
  GemmInput d_post_attention = {d, {}};
  RmsNormBackward(e.context, live->post_attention, w.post_norm, live->rstd2, d_normed, d,
                  g->post_norm, AmaxOf(e, &d_post_attention));
  live->post_attention.reset();
  return d_post_attention;
}

// Turns d [T, C], the gradient of post_attention, into that of the layer's input in place. Frees
// each activation in *live after its last use.
void AttentionPartBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                           const BackwardMode& mode, LayerActivations* live, const GemmInput& d,
                           DecoderLayerParameters* g) {
  EnsureAttention(e, w, live);
  BiasBackward(e.context, d.value, {g->o_bias});
  ResidualAddGradient residual_add(e, d, w.o);
  residual_add.Weight({live->attention, {}}, !mode.replace, g->o);
  EnsureHeads(e, w, live);
  at::Tensor d_attention = e.context.Empty(live->attention.sizes(), d.value);
  residual_add.Input(d_attention);
  at::Tensor d_qkv = e.context.Empty(live->qkv.sizes(), d.value);
  AttentionBackward(e.context, e.config, e.layout, live->qk, live->qkv, live->attention, live->lse,
                    d_attention, d_qkv);
  d_attention.reset();
  live->attention.reset();
  live->lse.reset();
  live->qk.reset();
  HeadNormRotaryBackward(e.context, e.config, live->qkv, live->qk_rstd, w.q_norm, w.k_norm,
                         e.rotary, e.positions, d_qkv, g->q_norm, g->k_norm);
  live->qkv.reset();
  live->qk_rstd.reset();
  BiasBackward(e.context, d_qkv, {g->q_bias, g->k_bias, g->v_bias});

  const GemmInput normed = FirstNorm(e, w, *live);
  const at::Tensor d_normed = ProjectBackward(e, {std::move(d_qkv), {}}, normed, QkvWeights(w),
                                              !mode.replace, QkvWeights(*g));
  RmsNormBackward(e.context, live->input, w.input_norm, live->rstd1, d_normed, d.value,
                  g->input_norm);
}

}  // namespace

DecoderLayerParameters::DecoderLayerParameters(const ParameterBuffer& buffer, int64_t layer) {
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const auto get = [&](const char* name) {
    return buffer.Get(absl::StrCat(prefix, name, ".weight"));
  };
  const auto bias = [&](const char* name) {
    return buffer.Get(absl::StrCat(prefix, name, ".bias"));
  };
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
  if (buffer.config().qkv_bias()) {
    q_bias = bias("self_attn.q_proj");
    k_bias = bias("self_attn.k_proj");
    v_bias = bias("self_attn.v_proj");
  }
  if (buffer.config().o_bias()) o_bias = bias("self_attn.o_proj");
  if (buffer.config().mlp_bias) {
    gate_bias = bias("mlp.gate_proj");
    up_bias = bias("mlp.up_proj");
    down_bias = bias("mlp.down_proj");
  }
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
  EnsurePostAttention(e, w, saved);
  DropIfRecomputed(LayerTensor::kAttention, saved);
  return MlpForward(e, w, saved);
}

void DecoderLayerBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                          const BackwardMode& mode, LayerActivations* saved, at::Tensor d,
                          DecoderLayerParameters* g) {
  // Copies references to tensors, not their contents; `live` frees recomputed tensors at the end.
  LayerActivations live = mode.consume ? std::move(*saved) : *saved;
  const GemmInput d_post_attention = MlpBackward(e, w, mode, &live, std::move(d), g);
  AttentionPartBackward(e, w, mode, &live, d_post_attention, g);
}

}  // namespace tritonrl
