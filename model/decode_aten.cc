// Decoding through ATen: the GPU's first version, and the reference for the CPU kernels. Attention
// gathers the slots' keys and values up to the longest sequence and masks the rest.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/decode.h"
#include "model/embedding.h"
#include "model/linear.h"
#include "model/rms_norm.h"
#include "model/swiglu.h"

namespace tritonrl {
namespace {

at::Tensor ToDevice(absl::Span<const int64_t> values, at::Device device) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor.to(device);
}

struct StepTensors {
  at::Tensor slots;      // [B]
  at::Tensor positions;  // [B]
  at::Tensor hidden;     // [B, 1, 1, longest]: true where a key lies beyond the row's position
  int64_t longest;
};

// qk: [B, (H + K) D], qkv: [B, (H + 2K) D]. Appends to the cache; returns [B, H D].
at::Tensor Attend(const ModelConfig& config, const StepTensors& step, int64_t layer,
                  const at::Tensor& qk, const at::Tensor& qkv, DecodeCache* cache) {
  const int64_t batch = qk.size(0), dim = config.head_dim, kv_heads = config.num_kv_heads;
  const at::Tensor& keys = cache->keys(layer);
  const at::Tensor& values = cache->values(layer);
  const at::Tensor k = qk.narrow(1, config.query_size(), config.kv_size());
  const at::Tensor v = qkv.narrow(1, config.query_size() + config.kv_size(), config.kv_size());
  // Views whose positions come before the heads, so that one write serves all rows.
  keys.permute({0, 2, 4, 1, 3})
      .index_put_({step.slots, step.positions.floor_divide(DecodeCache::kBlock),
                   step.positions.remainder(DecodeCache::kBlock)},
                  k.reshape({batch, kv_heads, dim}));
  values.permute({0, 2, 1, 3})
      .index_put_({step.slots, step.positions}, v.reshape({batch, kv_heads, dim}));
  const int64_t blocks = (step.longest + DecodeCache::kBlock - 1) / DecodeCache::kBlock;
  const at::Tensor all_keys = keys.narrow(2, 0, blocks)
                                  .index_select(0, step.slots)
                                  .transpose(2, 3)  // [B, K, D, blocks, kBlock]
                                  .reshape({batch, kv_heads, dim, blocks * DecodeCache::kBlock})
                                  .narrow(3, 0, step.longest);
  const at::Tensor all_values = values.narrow(2, 0, step.longest).index_select(0, step.slots);
  const at::Tensor q =
      qk.narrow(1, 0, config.query_size()).reshape({batch, kv_heads, config.group_size(), dim});
  at::Tensor scores = ToComputeType(at::matmul(q, all_keys))  // [B, K, group, longest]
                          .mul_(1.0 / std::sqrt(static_cast<double>(dim)))
                          .masked_fill_(step.hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor probs = scores.softmax(-1).to(q.scalar_type());
  return at::matmul(probs, all_values).reshape({batch, config.query_size()});
}

}  // namespace

at::Tensor DecodeStepAten(const DecodeModel& model, const DecodeRows& rows, DecodeCache* cache) {
  const ModelConfig& config = model.config;
  const at::Device device = model.embedding.device();
  const int64_t batch = static_cast<int64_t>(rows.tokens.size());
  const int64_t q_size = config.query_size(), kv_size = config.kv_size();
  StepTensors step;
  step.slots = ToDevice(rows.slots, device);
  step.positions = ToDevice(rows.positions, device);
  step.longest = *std::max_element(rows.positions.begin(), rows.positions.end()) + 1;
  step.hidden = at::arange(step.longest, step.slots.options())
                    .unsqueeze(0)
                    .gt(step.positions.unsqueeze(1))
                    .view({batch, 1, 1, step.longest});

  at::Tensor x = model.embedding.index_select(0, ToDevice(rows.tokens, device));
  at::Tensor rstd;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const DecoderLayerParameters& w = model.layers[layer];
    at::Tensor normed = RmsNormForward(model.context, x, w.input_norm, config.rms_norm_eps, &rstd);
    at::Tensor qkv = at::empty({batch, q_size + 2 * kv_size}, x.options());
    LinearForward(model.context, normed, w.q, false, qkv.narrow(1, 0, q_size));
    LinearForward(model.context, normed, w.k, false, qkv.narrow(1, q_size, kv_size));
    LinearForward(model.context, normed, w.v, false, qkv.narrow(1, q_size + kv_size, kv_size));
    const at::Tensor qk = HeadNormRotaryForward(model.context, config, qkv, w.q_norm, w.k_norm,
                                                model.rotary, step.positions, &rstd);
    x = x + at::linear(Attend(config, step, layer, qk, qkv, cache), w.o);
    normed = RmsNormForward(model.context, x, w.post_norm, config.rms_norm_eps, &rstd);
    at::Tensor gate_up = at::empty({batch, 2 * config.intermediate_size}, x.options());
    LinearForward(model.context, normed, w.gate, false,
                  gate_up.narrow(1, 0, config.intermediate_size));
    LinearForward(model.context, normed, w.up, false,
                  gate_up.narrow(1, config.intermediate_size, config.intermediate_size));
    x = x + at::linear(SwigluForward(model.context, gate_up), w.down);
  }
  const at::Tensor normed =
      RmsNormForward(model.context, x, model.final_norm, config.rms_norm_eps, &rstd);
  return at::linear(normed, model.head).to(at::kFloat);
}

}  // namespace tritonrl
