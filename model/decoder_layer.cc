#include "model/decoder_layer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "model/attention.h"
#include "model/linear.h"
#include "model/rms_norm.h"
#include "model/swiglu.h"

namespace tritonrl {
namespace {

// middle -> middle + down(silu(gate) * up) of its norm.
at::Tensor MlpForward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                      LayerActivations* saved) {
  const at::Tensor& middle = saved->middle;
  const int64_t rows = middle.size(0), size = e.config.intermediate_size;
  const at::Tensor normed =
      RmsNormForward(e.context, middle, w.post_norm, e.config.rms_norm_eps, &saved->rstd2);
  saved->gate_up = e.context.Empty({rows, 2 * size}, middle);
  LinearForward(e.context, normed, w.gate, false, saved->gate_up.narrow(1, 0, size));
  LinearForward(e.context, normed, w.up, false, saved->gate_up.narrow(1, size, size));
  const at::Tensor activated = SwigluForward(e.context, saved->gate_up);
  at::Tensor output = CopyOf(e.context, middle);
  LinearForward(e.context, activated, w.down, true, output);
  return output;
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
  const at::Tensor d_gate = d_gate_up.narrow(1, 0, size), d_up = d_gate_up.narrow(1, size, size);
  LinearBackwardWeight(e.context, d_gate, normed, g->gate);
  LinearBackwardWeight(e.context, d_up, normed, g->up);
  at::Tensor d_normed = e.context.Empty(d.sizes(), d);
  LinearBackwardInput(e.context, d_gate, w.gate, false, d_normed);
  LinearBackwardInput(e.context, d_up, w.up, true, d_normed);
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
}

at::Tensor DecoderLayerForward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                               const at::Tensor& input, LayerActivations* saved) {
  const int64_t rows = input.size(0), q_size = e.config.query_size(), kv_size = e.config.kv_size();
  saved->input = input;
  const at::Tensor normed =
      RmsNormForward(e.context, input, w.input_norm, e.config.rms_norm_eps, &saved->rstd1);
  saved->qkv = e.context.Empty({rows, q_size + 2 * kv_size}, input);
  LinearForward(e.context, normed, w.q, false, saved->qkv.narrow(1, 0, q_size));
  LinearForward(e.context, normed, w.k, false, saved->qkv.narrow(1, q_size, kv_size));
  LinearForward(e.context, normed, w.v, false, saved->qkv.narrow(1, q_size + kv_size, kv_size));
  saved->qk = HeadNormRotaryForward(e.context, e.config, saved->qkv, w.q_norm, w.k_norm, e.rotary,
                                    e.positions, &saved->qk_rstd);
  saved->attention =
      AttentionForward(e.context, e.config, e.layout, saved->qk, saved->qkv, &saved->lse);
  saved->middle = CopyOf(e.context, input);
  LinearForward(e.context, saved->attention, w.o, true, saved->middle);
  return MlpForward(e, w, saved);
}

void DecoderLayerBackward(const LayerEnvironment& e, const DecoderLayerParameters& w,
                          const LayerActivations& saved, at::Tensor d, DecoderLayerParameters* g) {
  MlpBackward(e, w, saved, d, g);

  const int64_t q_size = e.config.query_size(), kv_size = e.config.kv_size();
  LinearBackwardWeight(e.context, d, saved.attention, g->o);
  at::Tensor d_attention = e.context.Empty(saved.attention.sizes(), d);
  LinearBackwardInput(e.context, d, w.o, false, d_attention);
  at::Tensor d_qkv = e.context.Empty(saved.qkv.sizes(), d);
  AttentionBackward(e.context, e.config, e.layout, saved.qk, saved.qkv, saved.attention, saved.lse,
                    d_attention, d_qkv);
  HeadNormRotaryBackward(e.context, e.config, saved.qkv, saved.qk_rstd, w.q_norm, w.k_norm,
                         e.rotary, e.positions, d_qkv, g->q_norm, g->k_norm);

  const at::Tensor normed = RmsNormAgain(e.context, saved.input, w.input_norm, saved.rstd1);
  at::Tensor d_normed = e.context.Empty(d.sizes(), d);
  const struct {
    int64_t first, size;
    const at::Tensor& weight;
    at::Tensor& gradient;
  } parts[] = {
      {0, q_size, w.q, g->q}, {q_size, kv_size, w.k, g->k}, {q_size + kv_size, kv_size, w.v, g->v}};
  for (const auto& part : parts) {
    const at::Tensor d_part = d_qkv.narrow(1, part.first, part.size);
    LinearBackwardWeight(e.context, d_part, normed, part.gradient);
    LinearBackwardInput(e.context, d_part, part.weight, part.first > 0, d_normed);
  }
  RmsNormBackward(e.context, saved.input, w.input_norm, saved.rstd1, d_normed, d, g->input_norm);
}

}  // namespace tritonrl
