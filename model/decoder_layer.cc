#include "model/decoder_layer.h"

#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/attention.h"
#include "model/linear.h"
#include "model/rms_norm.h"
#include "model/swiglu.h"

namespace tritonrl {
namespace {

// Matrices of one width that lie one behind the other, as one; undefined if they do not.
at::Tensor Stacked(const ParameterBuffer& buffer, std::initializer_list<at::Tensor> parts) {
  int64_t rows = 0, next = parts.begin()->storage_offset();
  const int64_t first = next;
  for (const at::Tensor& part : parts) {
    if (part.storage_offset() != next) return {};
    rows += part.size(0);
    next += part.numel();
  }
  return buffer.flat().narrow(0, first, next - first).view({rows, parts.begin()->size(1)});
}

// Products of x with matrices side by side, or the gradients of them: one call where `all` is one
// matrix and x is on a GPU, where larger products are faster.
struct Sides {
  std::initializer_list<at::Tensor> parts;
  const at::Tensor& all;

  bool together(const LayerContext& context) const { return all.defined() && context.UseCuda(all); }
};

void SidesForward(const LayerContext& context, const at::Tensor& x, const Sides& weights,
                  at::Tensor out) {
  if (weights.together(context)) return LinearForward(context, x, weights.all, false, out);
  int64_t column = 0;
  for (const at::Tensor& weight : weights.parts) {
    LinearForward(context, x, weight, false, out.narrow(1, column, weight.size(0)));
    column += weight.size(0);
  }
}

// Adds to the gradients and returns that of x.
at::Tensor SidesBackward(const LayerContext& context, const at::Tensor& d_out, const at::Tensor& x,
                         const Sides& weights, const Sides& gradients) {
  at::Tensor d_x = context.Empty(x.sizes(), x);
  if (weights.together(context) && gradients.together(context)) {
    LinearBackwardWeight(context, d_out, x, gradients.all);
    LinearBackwardInput(context, d_out, weights.all, false, d_x);
    return d_x;
  }
  int64_t column = 0;
  for (size_t i = 0; i < weights.parts.size(); ++i) {
    const at::Tensor& weight = weights.parts.begin()[i];
    const at::Tensor d = d_out.narrow(1, column, weight.size(0));
    LinearBackwardWeight(context, d, x, gradients.parts.begin()[i]);
    LinearBackwardInput(context, d, weight, i > 0, d_x);
    column += weight.size(0);
  }
  return d_x;
}

// middle -> middle + down(silu(gate) * up) of its norm.
at::Tensor MlpForward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                      LayerActivations* saved) {
  const at::Tensor& middle = saved->middle;
  const int64_t rows = middle.size(0), size = e.config.intermediate_size;
  const at::Tensor normed =
      RmsNormForward(e.context, middle, w.post_norm, e.config.rms_norm_eps, &saved->rstd2);
  saved->gate_up = e.context.Empty({rows, 2 * size}, middle);
  SidesForward(e.context, normed, {{w.gate, w.up}, w.gate_up}, saved->gate_up);
  return LinearOnto(e.context, middle, SwigluForward(e.context, saved->gate_up), w.down);
}

// d [T, C]: gradient of the layer's output -> of middle.
void MlpBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                 const LayerActivations& saved, at::Tensor d, DecoderLayerParameters* g) {
  const int64_t rows = d.size(0), size = e.config.intermediate_size;
  at::Tensor d_activated = e.context.Empty({rows, size}, d);
  LinearBackwardInput(e.context, d, w.down, false, d_activated);
  at::Tensor activated;
  const at::Tensor d_gate_up = SwigluBackward(e.context, saved.gate_up, d_activated, &activated);
  LinearBackwardWeight(e.context, d, activated, g->down);

  const at::Tensor normed = RmsNormAgain(e.context, saved.middle, w.post_norm, saved.rstd2);
  const at::Tensor d_normed = SidesBackward(
      e.context, d_gate_up, normed, {{w.gate, w.up}, w.gate_up}, {{g->gate, g->up}, g->gate_up});
  RmsNormBackward(e.context, saved.middle, w.post_norm, saved.rstd2, d_normed, d, g->post_norm);
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
  qkv = Stacked(buffer, {q, k, v});
  gate_up = Stacked(buffer, {gate, up});
}

at::Tensor DecoderLayerForward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                               const at::Tensor& input, LayerActivations* saved) {
  const int64_t rows = input.size(0), q_size = e.config.query_size(), kv_size = e.config.kv_size();
  saved->input = input;
  const at::Tensor normed =
      RmsNormForward(e.context, input, w.input_norm, e.config.rms_norm_eps, &saved->rstd1);
  saved->qkv = e.context.Empty({rows, q_size + 2 * kv_size}, input);
  SidesForward(e.context, normed, {{w.q, w.k, w.v}, w.qkv}, saved->qkv);
  saved->qk = HeadNormRotaryForward(e.context, e.config, saved->qkv, w.q_norm, w.k_norm, e.rotary,
                                    e.positions, &saved->qk_rstd);
  saved->attention =
      AttentionForward(e.context, e.config, e.layout, saved->qk, saved->qkv, &saved->lse);
  saved->middle = LinearOnto(e.context, input, saved->attention, w.o);
  return MlpForward(e, w, saved);
}

void DecoderLayerBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                          const LayerActivations& saved, at::Tensor d, DecoderLayerParameters* g) {
  MlpBackward(e, w, saved, d, g);

  LinearBackwardWeight(e.context, d, saved.attention, g->o);
  at::Tensor d_attention = e.context.Empty(saved.attention.sizes(), d);
  LinearBackwardInput(e.context, d, w.o, false, d_attention);
  at::Tensor d_qkv = e.context.Empty(saved.qkv.sizes(), d);
  AttentionBackward(e.context, e.config, e.layout, saved.qk, saved.qkv, saved.attention, saved.lse,
                    d_attention, d_qkv);
  HeadNormRotaryBackward(e.context, e.config, saved.qkv, saved.qk_rstd, w.q_norm, w.k_norm,
                         e.rotary, e.positions, d_qkv, g->q_norm, g->k_norm);

  const at::Tensor normed = RmsNormAgain(e.context, saved.input, w.input_norm, saved.rstd1);
  const at::Tensor d_normed = SidesBackward(
      e.context, d_qkv, normed, {{w.q, w.k, w.v}, w.qkv}, {{g->q, g->k, g->v}, g->qkv});
  RmsNormBackward(e.context, saved.input, w.input_norm, saved.rstd1, d_normed, d, g->input_norm);
}

}  // namespace tritonrl
