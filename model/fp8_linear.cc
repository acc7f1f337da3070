#include "model/fp8_linear.h"

#include <c10/util/Exception.h>

#include <cstdint>

#include "absl/types/span.h"
#include "model/linear.h"

namespace tritonrl {
namespace {

// The weights, or their gradients, as one product takes them: as one matrix where it can be, which
// on a GPU it is for both alike.
absl::Span<const at::Tensor> Parts(const LayerContext& context, const Sides& sides) {
  if (Together(context, sides)) return absl::MakeConstSpan(&sides.all, 1);
  return sides.parts;
}

void CheckAlike(const Fp8Matrix& a, const Fp8Matrix& b) {
  TORCH_CHECK(a.in_hardware() == b.in_hardware(),
              "operands of an fp8 product lie on different devices or are of different types");
}

// out = x W^T (+ *add).
void Multiply(const LayerContext& context, const Fp8Matrix& x, const at::Tensor& weight,
              const at::Tensor* add, at::Tensor out) {
  const Fp8Matrix w = Quantize(context, weight, Fp8Format::kE4M3, Fp8Copies::kRows);
  CheckAlike(x, w);
  if (x.in_hardware()) {
    context.gemm(weight).MultiplyFp8(x.rows, x.scale, w.rows.t(), w.scale, /*fast=*/true, add, out);
    return;
  }
  if (add != nullptr) out.copy_(*add);
  LinearForward(context, x.rows, w.rows, add != nullptr, out);
}

}  // namespace

bool Fp8Takes(const Sides& weights) {
  for (const at::Tensor& weight : weights.parts) {
    if (weight.size(0) % 16 != 0 || weight.size(1) % 16 != 0) return false;
  }
  return true;
}

void Fp8Forward(const LayerContext& context, const at::Tensor& x, const at::Tensor& amax,
                const Sides& weights, const at::Tensor& out) {
  const Fp8Matrix in = Quantize(context, x, Fp8Format::kE4M3, Fp8Copies::kRows, amax);
  int64_t column = 0;
  for (const at::Tensor& weight : Parts(context, weights)) {
    Multiply(context, in, weight, nullptr, out.narrow(1, column, weight.size(0)));
    column += weight.size(0);
  }
}

at::Tensor Fp8Onto(const LayerContext& context, const at::Tensor& base, const at::Tensor& x,
                   const at::Tensor& amax, const at::Tensor& weight) {
  const Fp8Matrix in = Quantize(context, x, Fp8Format::kE4M3, Fp8Copies::kRows, amax);
  at::Tensor out = context.Empty(base.sizes(), base);
  Multiply(context, in, weight, &base, out);
  return out;
}

Fp8Matrix Fp8Gradient(const LayerContext& context, const at::Tensor& d_out,
                      const at::Tensor& amax) {
  return Quantize(context, d_out, context.gpu().fp8_gradients, Fp8Copies::kBoth, amax);
}

void Fp8BackwardInput(const LayerContext& context, Fp8Matrix* d_out, const Sides& weights,
                      at::Tensor d_x) {
  int64_t column = 0;
  for (const at::Tensor& weight : Parts(context, weights)) {
    const at::Tensor d = d_out->rows.narrow(1, column, weight.size(0));
    const bool add = column > 0;
    if (d_out->in_hardware()) {
      const Fp8Matrix w = Quantize(context, weight, Fp8Format::kE4M3, Fp8Copies::kColumns);
      CheckAlike(*d_out, w);
      context.gemm(weight).MultiplyFp8(d, d_out->scale, w.columns.t(), w.scale,
                                       context.gpu().fp8_fast_gradients, add ? &d_x : nullptr, d_x);
    } else {
      const Fp8Matrix w = Quantize(context, weight, Fp8Format::kE4M3, Fp8Copies::kRows);
      LinearBackwardInput(context, d, w.rows, add, d_x);
    }
    column += weight.size(0);
  }
  d_out->rows.reset();
}

void Fp8BackwardWeight(const LayerContext& context, Fp8Matrix* d_out, const at::Tensor& x,
                       const at::Tensor& amax, bool accumulate, const Sides& gradients) {
  const Fp8Matrix in = Quantize(context, x, Fp8Format::kE4M3, Fp8Copies::kColumns, amax);
  CheckAlike(*d_out, in);
  int64_t row = 0;
  for (at::Tensor gradient : Parts(context, gradients)) {
    const at::Tensor d = d_out->columns.narrow(0, row, gradient.size(0));
    if (d_out->in_hardware()) {
      context.gemm(gradient).MultiplyFp8(d, d_out->scale, in.columns.t(), in.scale,
                                         context.gpu().fp8_fast_gradients,
                                         accumulate ? &gradient : nullptr, gradient);
    } else {
      LinearBackwardWeight(context, d.t(), in.columns.t(), accumulate, gradient);
    }
    row += gradient.size(0);
  }
  d_out->columns.reset();
}

}  // namespace tritonrl
