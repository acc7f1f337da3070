#include "model/sides.h"

#include <cstdint>

#include "model/linear.h"

namespace tritonrl {

at::Tensor Stacked(const at::Tensor& flat, absl::Span<const at::Tensor> parts) {
  int64_t rows = 0, next = parts[0].storage_offset();
  const int64_t first = next;
  for (const at::Tensor& part : parts) {
    if (part.storage_offset() != next) return {};
    rows += part.size(0);
    next += part.numel();
  }
  return flat.narrow(0, first, next - first).view({rows, parts[0].size(1)});
}

bool Together(const LayerContext& context, const Sides& weights) {
  return weights.all.defined() && context.UseCuda(weights.all);
}

void SidesForward(const LayerContext& context, const at::Tensor& x, const Sides& weights,
                  bool together, const at::Tensor& out) {
  if (together) return LinearForward(context, x, weights.all, false, out);
  int64_t column = 0;
  for (const at::Tensor& weight : weights.parts) {
    LinearForward(context, x, weight, false, out.narrow(1, column, weight.size(0)));
    column += weight.size(0);
  }
}

at::Tensor SidesBackward(const LayerContext& context, const at::Tensor& d_out, const at::Tensor& x,
                         const Sides& weights, bool together, bool accumulate,
                         const Sides& gradients) {
  at::Tensor d_x = context.Empty(x.sizes(), x);
  if (together) {
    LinearBackwardWeight(context, d_out, x, accumulate, gradients.all);
    LinearBackwardInput(context, d_out, weights.all, false, d_x);
    return d_x;
  }
  int64_t column = 0;
  for (size_t i = 0; i < weights.parts.size(); ++i) {
    const at::Tensor& weight = weights.parts[i];
    const at::Tensor d = d_out.narrow(1, column, weight.size(0));
    LinearBackwardWeight(context, d, x, accumulate, gradients.parts[i]);
    LinearBackwardInput(context, d, weight, i > 0, d_x);
    column += weight.size(0);
  }
  return d_x;
}

}  // namespace tritonrl
