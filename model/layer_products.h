// The products of a decoder layer, each under one name whether its operands are in the weights'
// type or (fp8_linear.h) copied to 8-bit numbers.

#ifndef TRITONRL_MODEL_LAYER_PRODUCTS_H_
#define TRITONRL_MODEL_LAYER_PRODUCTS_H_

#include <ATen/core/Tensor.h>

#include "model/activations.h"
#include "model/fp8.h"
#include "model/layer_context.h"
#include "model/sides.h"

namespace tritonrl {

class LayerProducts {
 public:
  // fp8: on 8-bit numbers where fp8_linear.h takes the weights. `context` must outlive this.
  LayerProducts(const LayerContext& context, bool fp8) : context_(context), fp8_(fp8) {}

  // out [T, N] = x W^T with matrices side by side.
  void Forward(const ProductInput& x, const Sides& weights, const at::Tensor& out) const;

  // The gradient of x [T, K], given that of out [T, N], which is freed as soon as its copies are
  // made, if there are any. Gradients of the weights are added to, or written (`accumulate`).
  at::Tensor Backward(ProductInput d_out, const ProductInput& x, const Sides& weights,
                      bool accumulate, const Sides& gradients) const;

  // base + x W^T [T, N]: what attention or the MLP adds to the residual stream.
  at::Tensor Onto(const at::Tensor& base, const ProductInput& x, const at::Tensor& weight) const;

 private:
  friend class AddedGradient;
  bool OnFp8(const Sides& weights) const;

  const LayerContext& context_;
  const bool fp8_;
};

// The gradient d [T, N] of what Onto added, for the two products of its backward, each of which is
// asked for once.
class AddedGradient {
 public:
  AddedGradient(const LayerProducts& products, const ProductInput& d, const at::Tensor& weight);

  // The gradient of x [T, K], into memory that is there.
  void Input(const at::Tensor& d_x);
  // That of the weight [N, K], added to `gradient` or written there.
  void Weight(const ProductInput& x, bool accumulate, const at::Tensor& gradient);

 private:
  const LayerContext& context_;
  const at::Tensor d_;
  const Sides weight_;
  const bool fp8_;
  Fp8Matrix copies_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYER_PRODUCTS_H_
