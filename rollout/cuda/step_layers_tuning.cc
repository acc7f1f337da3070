// How the products of a step are made: the fastest ways, or ways that are fixed.
#include <algorithm>
#include <vector>

#include "rollout/cuda/step_layers.h"

namespace tritonrl {
namespace {

// Weights on which products are tried in turn: several times what an L2 cache holds.
constexpr size_t kTuneLayers = 8;

}  // namespace

void StepLayers::Tune(int64_t rows) {
  if (!tuned_.insert(rows).second) return;
  const auto first = [rows](const at::Tensor& x) { return x.narrow(0, 0, rows); };
  const auto tune = [&](const at::Tensor& x, at::Tensor DecoderLayerParameters::*weight,
                        const at::Tensor* add, const at::Tensor& out) {
    std::vector<at::Tensor> weights, transposed;
    for (size_t i = 0; i < std::min(kTuneLayers, layers_.size()); ++i) {
      weights.push_back(layers_[i].*weight);
      transposed.push_back(weights.back().t());
    }
    if (fp8_weights_ != nullptr) return fp8_weights_->Tune(x, weights, add, out, &gemm_);
    gemm_.Tune(x, transposed, add, out);
  };
  const at::Tensor x = first(x_), middle = first(middle_);
  tune(first(normed_), &DecoderLayerParameters::qkv, nullptr, first(qkv_));
  if (rows <= logits_.size(0)) gemm_.Tune(first(normed_), {head_.t()}, nullptr, first(logits_));
  if (Chained(rows)) return;
  tune(first(attention_), &DecoderLayerParameters::o, Added(x), middle);
  tune(first(normed_), &DecoderLayerParameters::gate_up, nullptr, first(gate_up_));
  tune(first(inner_), &DecoderLayerParameters::down, Added(middle), x);
}

void StepLayers::Fix() {
  const auto fix = [&](const at::Tensor& x, const at::Tensor& weight, const at::Tensor* add,
                       const at::Tensor& out) {
    if (fp8_weights_ != nullptr) return fp8_weights_->Fix(weight, add, out, &gemm_);
    gemm_.Fix(x, weight.t(), add, out);
  };
  for (const DecoderLayerParameters& layer : layers_) {
    fix(normed_, layer.qkv, nullptr, qkv_);
    fix(attention_, layer.o, &x_, middle_);
    fix(normed_, layer.gate_up, nullptr, gate_up_);
    fix(inner_, layer.down, &middle_, x_);
  }
  gemm_.Fix(normed_, head_.t(), nullptr, logits_);
}

}  // namespace tritonrl
