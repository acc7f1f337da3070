#include "model/layer_products.h"

#include "model/fp8_linear.h"
#include "model/linear.h"

namespace tritonrl {

bool LayerProducts::OnFp8(const Sides& weights) const { return fp8_ && Fp8Takes(weights); }

void LayerProducts::Forward(const ProductInput& x, const Sides& weights,
                            const at::Tensor& out) const {
  if (OnFp8(weights)) return Fp8Forward(context_, x.value, x.amax, weights, out);
  SidesForward(context_, x.value, weights, Together(context_, weights), out);
}

at::Tensor LayerProducts::Backward(ProductInput d_out, const ProductInput& x, const Sides& weights,
                                   bool accumulate, const Sides& gradients) const {
  if (OnFp8(weights)) {
    Fp8Matrix d = Fp8Gradient(context_, d_out.value, d_out.amax);
    d_out.value.reset();
    Fp8BackwardWeight(context_, &d, x.value, x.amax, accumulate, gradients);
    at::Tensor d_x = context_.Empty(x.value.sizes(), x.value);
    Fp8BackwardInput(context_, &d, weights, d_x);
    return d_x;
  }
  const bool together = Together(context_, weights) && gradients.all.defined();
  return SidesBackward(context_, d_out.value, x.value, weights, together, accumulate, gradients);
}

at::Tensor LayerProducts::Onto(const at::Tensor& base, const ProductInput& x,
                               const at::Tensor& weight) const {
  if (OnFp8({{weight}, weight})) return Fp8Onto(context_, base, x.value, x.amax, weight);
  return LinearOnto(context_, base, x.value, weight);
}

AddedGradient::AddedGradient(const LayerProducts& products, const ProductInput& d,
                             const at::Tensor& weight)
    : context_(products.context_),
      d_(d.value),
      weight_({{weight}, weight}),
      fp8_(products.OnFp8(weight_)) {
  if (fp8_) copies_ = Fp8Gradient(context_, d.value, d.amax);
}

void AddedGradient::Input(const at::Tensor& d_x) {
  if (fp8_) return Fp8BackwardInput(context_, &copies_, weight_, d_x);
  LinearBackwardInput(context_, d_, weight_.all, false, d_x);
}

void AddedGradient::Weight(const ProductInput& x, bool accumulate, const at::Tensor& gradient) {
  if (fp8_) {
    return Fp8BackwardWeight(context_, &copies_, x.value, x.amax, accumulate,
                             {{gradient}, gradient});
  }
  LinearBackwardWeight(context_, d_, x.value, accumulate, gradient);
}

}  // namespace tritonrl
