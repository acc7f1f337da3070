// Tests of linear layers, fused projections and the LM head; see layers_fixture.h.

#include "model/layers/linear.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/layers/lm_head.h"
#include "model/testing/layers_fixture.h"

namespace tritonrl {
namespace {

class LinearTest : public LayersFixture {};

TEST_P(LinearTest, Linear) {
  const at::Tensor x = Leaf({kRows, 40}, 1), w = Leaf({75, 40}, 2);
  const at::Tensor d_out = RandomTensor({kRows, 75}, 3);
  const at::Tensor expected = at::matmul(x, w.t());
  const Tensors grads = AutogradOf(expected, d_out, {x, w});
  // Accumulates into a column slice of ones.
  at::Tensor wide = at::zeros({kRows, 80}, type());
  wide.fill_(1.0);
  LinearForward(context_, Typed(x), Typed(w), true, wide.narrow(1, 2, 75));
  ExpectClose(wide.narrow(1, 2, 75), expected + 1.0, "accumulated");
  EXPECT_EQ(wide.narrow(1, 0, 2).min().item<double>(), 1.0);
  EXPECT_EQ(wide.narrow(1, 77, 3).max().item<double>(), 1.0);
  LinearForward(context_, Typed(x), Typed(w), false, wide.narrow(1, 2, 75));
  ExpectClose(wide.narrow(1, 2, 75), expected, "output");

  at::Tensor d_x = at::empty({kRows, 40}, type()), d_w = Zeros({75, 40});
  at::Tensor d_wide = at::zeros({kRows, 80}, type());
  d_wide.narrow(1, 3, 75).copy_(d_out);
  LinearBackwardInput(context_, d_wide.narrow(1, 3, 75), Typed(w), false, d_x);
  ExpectClose(d_x, grads[0], "d_x");
  LinearBackwardInput(context_, d_wide.narrow(1, 3, 75), Typed(w), true, d_x);
  ExpectClose(d_x, grads[0] * 2, "d_x twice");
  LinearBackwardWeight(context_, d_wide.narrow(1, 3, 75), Typed(x), true, d_w);
  ExpectClose(d_w, grads[1], "d_w");
  LinearBackwardWeight(context_, d_wide.narrow(1, 3, 75), Typed(x), true, d_w);
  ExpectClose(d_w, grads[1] * 2, "d_w twice");
  d_w.fill_(std::nan(""));
  LinearBackwardWeight(context_, d_wide.narrow(1, 3, 75), Typed(x), false, d_w);
  ExpectClose(d_w, grads[1], "d_w written");
}

TEST_P(LinearTest, LinearResidualAdd) {
  const at::Tensor base = RandomTensor({kRows, 75}, 1);
  const at::Tensor x = RandomTensor({kRows, 40}, 2), w = RandomTensor({75, 40}, 3);
  const at::Tensor kept = Typed(base);
  ExpectClose(LinearResidualAdd(context_, kept, Typed(x), Typed(w)), base + at::matmul(x, w.t()),
              "sum");
  EXPECT_TRUE(SameBits(kept, Typed(base)));
}

TEST_P(LinearTest, FusedProjection) {
  const std::vector<int64_t> sizes = {32, 16, 8};
  const at::Tensor x = RandomTensor({kRows, 24}, 1), d_out = RandomTensor({kRows, 56}, 2);
  const at::Tensor flat = Typed(RandomTensor({56 * 24 + 9}, 3));
  at::Tensor d_flat = Zeros({56 * 24});
  FusedWeights weights, gradients;
  int64_t row = 0;
  for (const int64_t size : sizes) {
    weights.parts.push_back(flat.narrow(0, 5 + row * 24, size * 24).view({size, 24}));
    gradients.parts.push_back(d_flat.narrow(0, row * 24, size * 24).view({size, 24}));
    row += size;
  }
  weights.fused = Stacked(flat, weights.parts);
  gradients.fused = Stacked(d_flat, gradients.parts);
  ASSERT_EQ(weights.fused.sizes(), (std::vector<int64_t>{56, 24}));
  EXPECT_TRUE(weights.fused.narrow(0, 32, 16).equal(weights.parts[1]));
  EXPECT_FALSE(Stacked(flat, {weights.parts[0], weights.parts[2]}).defined());
  EXPECT_EQ(FusedOrParts(context_, weights).size(), 3);  // the parts, as the tensors are on the CPU

  const at::Tensor w = weights.fused.to(at::kDouble);
  at::Tensor out = at::empty({kRows, 56}, type());
  FusedLinearForward(context_, Typed(x), weights, out);
  ExpectClose(out, at::matmul(x, w.t()), "output");
  d_flat.fill_(1.0);
  const at::Tensor d_x =
      FusedLinearBackward(context_, Typed(d_out), Typed(x), weights, true, gradients);
  ExpectClose(d_x, at::matmul(d_out, w), "d_x");
  ExpectClose(gradients.fused, at::matmul(d_out.t(), x) + 1.0, "d_w added");
  d_flat.fill_(std::nan(""));
  FusedLinearBackward(context_, Typed(d_out), Typed(x), weights, false, gradients);
  ExpectClose(gradients.fused, at::matmul(d_out.t(), x), "d_w written");
}

TEST_P(LinearTest, LmHeadInChunksWithTemperature) {
  const at::Tensor hidden = Leaf({kRows, 40}, 1), w = Leaf({101, 40}, 2);
  const at::Tensor targets = at::arange(kRows, at::kLong).remainder(101);
  const at::Tensor d_log_probs = RandomTensor({kRows}, 3);
  for (double temperature : {1.0, 0.6}) {
    const at::Tensor log_softmax = (at::matmul(hidden, w.t()) / temperature).log_softmax(-1);
    const at::Tensor expected = log_softmax.gather(1, targets.unsqueeze(1)).squeeze(1);
    const Tensors grads = AutogradOf(expected, d_log_probs, {hidden, w});
    for (int64_t chunk : {0, 7}) {
      const HeadSettings settings = {temperature, chunk};
      const HeadOutput out = LmHeadForward(context_, Typed(hidden), Typed(w), targets, settings);
      ExpectClose(out.log_probs, expected, "log_probs");
      ExpectClose(out.entropy, -(log_softmax.exp() * log_softmax).sum(-1), "entropy");
      at::Tensor d_w = Zeros({101, 40});
      const at::Tensor d_hidden = LmHeadBackward(context_, Typed(hidden), Typed(w), targets,
                                                 settings, out.lse, Typed(d_log_probs), d_w);
      ExpectClose(d_hidden, grads[0], "d_hidden");
      ExpectClose(d_w, grads[1], "d_w");
    }
  }
}

// Compares LmHeadForwardBackward with LmHeadForward and LmHeadBackward. The gradient of the loss
// depends on the log-probabilities and entropies that the callback gets.
TEST_P(LinearTest, LmHeadLearnsAsForwardAndBackwardDo) {
  const at::Tensor hidden = Typed(RandomTensor({kRows, 40}, 1)),
                   w = Typed(RandomTensor({101, 40}, 2));
  const at::Tensor targets = at::arange(kRows, at::kLong).remainder(101);
  const HeadSettings settings = {0.7, 7};
  const HeadOutput expected = LmHeadForward(context_, hidden, w, targets, settings);
  const auto slope = [](const at::Tensor& log_probs, const at::Tensor& entropy) {
    return log_probs * 0.1 + entropy;
  };
  at::Tensor expected_d_w = Zeros({101, 40});
  const at::Tensor expected_d =
      LmHeadBackward(context_, hidden, w, targets, settings, expected.lse,
                     slope(expected.log_probs, expected.entropy), expected_d_w);
  for (const bool accumulate : {true, false}) {
    at::Tensor d = at::empty(hidden.sizes(), type()), d_w = Zeros({101, 40});
    d_w.fill_(accumulate ? 2.0 : std::nan(""));
    int64_t next = 0;
    const HeadOutput out = LmHeadForwardBackward(
        context_, hidden, w, targets, settings,
        [&](int64_t begin, int64_t end, const at::Tensor& log_probs, const at::Tensor& entropy) {
          EXPECT_EQ(begin, next);
          EXPECT_EQ(log_probs.size(0), end - begin);
          next = end;
          return slope(log_probs, entropy);
        },
        accumulate, d, d_w);
    EXPECT_EQ(next, kRows);
    ExpectClose(out.log_probs, expected.log_probs, "log_probs");
    ExpectClose(out.entropy, expected.entropy, "entropy");
    ExpectClose(d, expected_d, "d_hidden");
    ExpectClose(d_w, expected_d_w + (accumulate ? 2.0 : 0.0), "d_w");
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, LinearTest,
                         testing::Values(Path::kKernels, Path::kAtenFloat, Path::kAtenDouble),
                         PathName);

}  // namespace
}  // namespace tritonrl
