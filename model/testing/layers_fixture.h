// Test fixture that compares each layer's output and gradients with autograd of the formula in
// plain fp64 operations, for the three implementations of a layer.

#ifndef TRITONRL_MODEL_TESTING_LAYERS_FIXTURE_H_
#define TRITONRL_MODEL_TESTING_LAYERS_FIXTURE_H_

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "model/layers/layer_context.h"
#include "model/testing/test_util.h"

namespace tritonrl {

using Tensors = std::vector<at::Tensor>;

// The implementations: hand-written CPU kernels, ATen in fp32, and ATen in fp64.
enum class Path { kKernels, kAtenFloat, kAtenDouble };

class LayersFixture : public testing::TestWithParam<Path> {
 protected:
  LayersFixture() : context_(2, GetParam() != Path::kKernels) {}

  at::ScalarType type() const { return GetParam() == Path::kAtenDouble ? at::kDouble : at::kFloat; }
  double tolerance() const { return GetParam() == Path::kAtenDouble ? 1e-6 : 1e-5; }
  at::Tensor Typed(const at::Tensor& x) const { return x.detach().to(type()); }
  at::Tensor Zeros(at::IntArrayRef shape) const { return at::zeros(shape, at::kFloat); }

  void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, const char* what) const {
    ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
    EXPECT_LT(RelativeDifference(actual, expected), tolerance()) << what;
  }

  const LayerContext context_;
};

// Returns a random fp64 tensor that requires a gradient.
inline at::Tensor Leaf(at::IntArrayRef shape, uint64_t seed, double scale = 1.0) {
  return RandomTensor(shape, seed, scale).set_requires_grad(true);
}

// Returns the gradients of sum(out * d_out) with respect to `inputs`.
inline Tensors AutogradOf(const at::Tensor& out, const at::Tensor& d_out, const Tensors& inputs) {
  return torch::autograd::grad({out}, inputs, {d_out});
}

inline constexpr int64_t kRows = 131;

inline std::string PathName(const testing::TestParamInfo<Path>& info) {
  const char* const names[] = {"Kernels", "AtenFloat", "AtenDouble"};
  return names[static_cast<int>(info.param)];
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_TESTING_LAYERS_FIXTURE_H_
