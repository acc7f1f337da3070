// RMSNorm of each query and key head (Qwen3) followed by rotary position embedding (Su et al.,
// 2021) in Hugging Face's layout: the two halves (a, b) of a head become
// (a cos - b sin, b cos + a sin).
//
// H query heads, K key/value heads, D head dimension; qkv rows hold queries, keys, values.

#ifndef TRITONRL_MODEL_LAYERS_ROTARY_H_
#define TRITONRL_MODEL_LAYERS_ROTARY_H_

#include <ATen/core/Tensor.h>

#include "model/layers/layer_context.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// Cosines and sines of each position; YaRN's attention_factor is multiplied in.
struct RotaryTable {
  at::Tensor cos;  // [max_positions, D / 2] fp32 (fp64 for a model in fp64)
  at::Tensor sin;
};

RotaryTable MakeRotaryTable(const ModelConfig& config, at::Device device, at::ScalarType dtype);

// qkv: [T, (H + 2K) D]; positions: [T] int64 below max_positions; q_weight, k_weight: [D], or
// undefined for no norm. Returns rotated queries and keys [T, (H + K) D]; *rstd: [T, H + K].
at::Tensor HeadNormRotaryForward(const LayerContext& context, const ModelConfig& config,
                                 const at::Tensor& qkv, const at::Tensor& q_weight,
                                 const at::Tensor& k_weight, const RotaryTable& table,
                                 const at::Tensor& positions, at::Tensor* rstd);

// Replaces the first (H + K) D columns of d_qkv, the gradient of the rotated queries and keys, by
// the gradient of the projections. Adds to d_q_weight and d_k_weight, [D] fp32.
void HeadNormRotaryBackward(const LayerContext& context, const ModelConfig& config,
                            const at::Tensor& qkv, const at::Tensor& rstd,
                            const at::Tensor& q_weight, const at::Tensor& k_weight,
                            const RotaryTable& table, const at::Tensor& positions, at::Tensor d_qkv,
                            at::Tensor d_q_weight, at::Tensor d_k_weight);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_ROTARY_H_
