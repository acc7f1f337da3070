// Each layer's output and every gradient against autograd of the formula written in plain fp64
// operations, for the three ways a layer can run.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "model/attention.h"
#include "model/embedding.h"
#include "model/layer_context.h"
#include "model/linear.h"
#include "model/lm_head.h"
#include "model/rms_norm.h"
#include "model/rotary.h"
#include "model/sides.h"
#include "model/swiglu.h"
#include "model/test_util.h"

namespace tritonrl {
namespace {

using Tensors = std::vector<at::Tensor>;

enum class Path { kKernels, kAtenFloat, kAtenDouble };

class LayersTest : public testing::TestWithParam<Path> {
 protected:
  LayersTest() : context_(2, GetParam() != Path::kKernels) {}

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

// fp64 inputs that autograd follows.
at::Tensor Leaf(at::IntArrayRef shape, uint64_t seed, double scale = 1.0) {
  return RandomTensor(shape, seed, scale).set_requires_grad(true);
}

// d sum(out * d_out) / d inputs
Tensors AutogradOf(const at::Tensor& out, const at::Tensor& d_out, const Tensors& inputs) {
  return torch::autograd::grad({out}, inputs, {d_out});
}

constexpr int64_t kRows = 131;

TEST_P(LayersTest, Linear) {
  const at::Tensor x = Leaf({kRows, 40}, 1), w = Leaf({75, 40}, 2);
  const at::Tensor d_out = RandomTensor({kRows, 75}, 3);
  const at::Tensor expected = at::matmul(x, w.t());
  const Tensors grads = AutogradOf(expected, d_out, {x, w});
  // Into a column slice, on top of what is there.
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

TEST_P(LayersTest, LinearOnto) {
  const at::Tensor base = RandomTensor({kRows, 75}, 1);
  const at::Tensor x = RandomTensor({kRows, 40}, 2), w = RandomTensor({75, 40}, 3);
  const at::Tensor kept = Typed(base);
  ExpectClose(LinearOnto(context_, kept, Typed(x), Typed(w)), base + at::matmul(x, w.t()), "sum");
  EXPECT_TRUE(SameBits(kept, Typed(base)));
}

TEST_P(LayersTest, MatricesSideBySideTogetherAndOneByOne) {
  const std::vector<int64_t> sizes = {32, 16, 8};
  const at::Tensor x = RandomTensor({kRows, 24}, 1), d_out = RandomTensor({kRows, 56}, 2);
  const at::Tensor flat = Typed(RandomTensor({56 * 24 + 9}, 3));
  at::Tensor d_flat = Zeros({56 * 24});
  Sides weights, gradients;
  int64_t row = 0;
  for (const int64_t size : sizes) {
    weights.parts.push_back(flat.narrow(0, 5 + row * 24, size * 24).view({size, 24}));
    gradients.parts.push_back(d_flat.narrow(0, row * 24, size * 24).view({size, 24}));
    row += size;
  }
  weights.all = Stacked(flat, weights.parts);
  gradients.all = Stacked(d_flat, gradients.parts);
  ASSERT_EQ(weights.all.sizes(), (std::vector<int64_t>{56, 24}));
  EXPECT_TRUE(weights.all.narrow(0, 32, 16).equal(weights.parts[1]));
  EXPECT_FALSE(Stacked(flat, {weights.parts[0], weights.parts[2]}).defined());
  EXPECT_FALSE(Together(context_, weights));  // no GPU here

  const at::Tensor w = weights.all.to(at::kDouble);
  for (const bool together : {false, true}) {
    at::Tensor out = at::empty({kRows, 56}, type());
    SidesForward(context_, Typed(x), weights, together, out);
    ExpectClose(out, at::matmul(x, w.t()), "output");
    d_flat.fill_(1.0);
    const at::Tensor d_x =
        SidesBackward(context_, Typed(d_out), Typed(x), weights, together, true, gradients);
    ExpectClose(d_x, at::matmul(d_out, w), "d_x");
    ExpectClose(gradients.all, at::matmul(d_out.t(), x) + 1.0, "d_w added");
    d_flat.fill_(std::nan(""));
    SidesBackward(context_, Typed(d_out), Typed(x), weights, together, false, gradients);
    ExpectClose(gradients.all, at::matmul(d_out.t(), x), "d_w written");
  }
}

at::Tensor ReferenceNorm(const at::Tensor& x, const at::Tensor& w, double eps) {
  return w * x * (x.square().mean(-1, true) + eps).rsqrt();
}

TEST_P(LayersTest, RmsNorm) {
  const at::Tensor x = Leaf({kRows, 40}, 1), w = Leaf({40}, 2);
  const at::Tensor d_y = RandomTensor({kRows, 40}, 3), before = RandomTensor({kRows, 40}, 4);
  const at::Tensor expected = ReferenceNorm(x, w, 1e-3);
  const Tensors grads = AutogradOf(expected, d_y, {x, w});
  at::Tensor rstd;
  const at::Tensor y = RmsNormForward(context_, Typed(x), Typed(w), 1e-3, &rstd);
  ExpectClose(y, expected, "output");
  EXPECT_TRUE(SameBits(RmsNormAgain(context_, Typed(x), Typed(w), rstd), y));
  at::Tensor d_x = Typed(before).clone(), d_w = Zeros({40});
  RmsNormBackward(context_, Typed(x), Typed(w), rstd, Typed(d_y), d_x, d_w);
  ExpectClose(d_x, grads[0] + before, "d_x on top of the residual's");
  ExpectClose(d_w, grads[1], "d_w");
}

at::Tensor ReferenceRotary(const at::Tensor& x, const RotaryTable& table,
                           const at::Tensor& positions) {  // x: [T, heads, D]
  const int64_t half = x.size(-1) / 2;
  const at::Tensor cos = table.cos.index_select(0, positions).repeat({1, 2}).unsqueeze(1);
  const at::Tensor sin = table.sin.index_select(0, positions).repeat({1, 2}).unsqueeze(1);
  const at::Tensor turned =
      at::cat(Tensors{x.narrow(-1, half, half).neg(), x.narrow(-1, 0, half)}, -1);
  return x * cos + turned * sin;
}

TEST_P(LayersTest, HeadNormAndRotary) {
  const ModelConfig config = SmallConfig();
  const int64_t heads = 4, kv_heads = 2, dim = config.head_dim;
  const at::Tensor qkv = Leaf({kRows, (heads + 2 * kv_heads) * dim}, 1);
  const at::Tensor wq = Leaf({dim}, 2), wk = Leaf({dim}, 3);
  const at::Tensor positions = at::arange(kRows, at::kLong).flip({0}).contiguous();
  const at::Tensor d_qk = RandomTensor({kRows, (heads + kv_heads) * dim}, 4);
  const RotaryTable table = MakeRotaryTable(config, at::kCPU, at::kDouble);
  const RotaryTable typed_table = MakeRotaryTable(config, at::kCPU, type());
  EXPECT_NEAR(table.cos.data_ptr<double>()[3 * dim / 2 + 1],
              std::cos(3 * std::pow(10000.0, -2.0 / static_cast<double>(dim))), 1e-12);
  for (bool normed : {true, false}) {
    at::Tensor q = qkv.narrow(1, 0, heads * dim).view({kRows, heads, dim});
    at::Tensor k = qkv.narrow(1, heads * dim, kv_heads * dim).view({kRows, kv_heads, dim});
    if (normed) {
      q = ReferenceNorm(q, wq, config.rms_norm_eps);
      k = ReferenceNorm(k, wk, config.rms_norm_eps);
    }
    const at::Tensor expected =
        at::cat(Tensors{ReferenceRotary(q, table, positions), ReferenceRotary(k, table, positions)},
                1)
            .view({kRows, -1});
    const Tensors inputs = normed ? Tensors{qkv, wq, wk} : Tensors{qkv};
    const Tensors grads = AutogradOf(expected, d_qk, inputs);

    const at::Tensor none, x = Typed(qkv);
    const at::Tensor q_weight = normed ? Typed(wq) : none, k_weight = normed ? Typed(wk) : none;
    at::Tensor rstd;
    const at::Tensor qk = HeadNormRotaryForward(context_, config, x, q_weight, k_weight,
                                                typed_table, positions, &rstd);
    ExpectClose(qk, expected, "output");
    at::Tensor d = at::zeros(qkv.sizes(), type());
    d.narrow(1, 0, (heads + kv_heads) * dim).copy_(d_qk);
    at::Tensor d_wq = Zeros({dim}), d_wk = Zeros({dim});
    HeadNormRotaryBackward(context_, config, x, rstd, q_weight, k_weight, typed_table, positions, d,
                           d_wq, d_wk);
    ExpectClose(d, grads[0], "d_qkv");
    if (normed) {
      ExpectClose(d_wq, grads[1], "d_q_norm");
      ExpectClose(d_wk, grads[2], "d_k_norm");
    }
  }
}

// All sequences in one square with a mask, key/value heads repeated.
at::Tensor ReferenceAttention(const ModelConfig& config, const std::vector<int64_t>& offsets,
                              const at::Tensor& qk, const at::Tensor& qkv) {
  const int64_t total = offsets.back(), dim = config.head_dim, heads = config.num_heads;
  auto split = [&](const at::Tensor& x, int64_t first, int64_t count) {
    return x.narrow(1, first * dim, count * dim)
        .reshape({total, count, dim})
        .transpose(0, 1)
        .repeat_interleave(heads / count, 0);
  };
  const at::Tensor q = split(qk, 0, heads), k = split(qk, heads, config.num_kv_heads);
  const at::Tensor v = split(qkv, heads + config.num_kv_heads, config.num_kv_heads);
  at::Tensor mask = at::empty({total, total}, at::kDouble);
  mask.fill_(-std::numeric_limits<double>::infinity());
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    for (int64_t i = offsets[s]; i < offsets[s + 1]; ++i) {
      for (int64_t j = offsets[s]; j <= i; ++j) mask.data_ptr<double>()[i * total + j] = 0;
    }
  }
  const at::Tensor scores =
      at::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(dim)) + mask;
  return at::matmul(scores.softmax(-1), v).transpose(0, 1).reshape({total, heads * dim});
}

TEST_P(LayersTest, AttentionOfPackedSequences) {
  const ModelConfig config = SmallConfig();
  PackedBatch batch;
  batch.offsets = {0, 50, 50, 51, 130, kRows};  // one of them empty
  batch.tokens = at::zeros({kRows}, at::kLong);
  const SequenceLayout layout = MakeSequenceLayout(batch);
  EXPECT_EQ(layout.num_sequences(), 4);
  const int64_t qk_size = config.query_size() + config.kv_size();
  const at::Tensor qk = Leaf({kRows, qk_size}, 1), qkv = Leaf({kRows, qk_size + 48}, 2);
  const at::Tensor d_out = RandomTensor({kRows, config.query_size()}, 3);
  const at::Tensor expected = ReferenceAttention(config, batch.offsets, qk, qkv);
  const Tensors grads = AutogradOf(expected, d_out, {qk, qkv});
  const at::Tensor typed_qk = Typed(qk), typed_qkv = Typed(qkv);
  at::Tensor lse;
  const at::Tensor out = AttentionForward(context_, config, layout, typed_qk, typed_qkv, &lse);
  ExpectClose(out, expected, "output");
  at::Tensor d = at::empty(qkv.sizes(), type());
  d.fill_(std::nan(""));  // every element must be written
  AttentionBackward(context_, config, layout, typed_qk, typed_qkv, out, lse, Typed(d_out), d);
  ExpectClose(d.narrow(1, 0, qk_size), grads[0], "d_qk");
  ExpectClose(d.narrow(1, qk_size, 48), grads[1].narrow(1, qk_size, 48), "d_v");
}

TEST_P(LayersTest, Swiglu) {
  const at::Tensor x = Leaf({kRows, 2 * 72}, 1, 3.0), d_out = RandomTensor({kRows, 72}, 2);
  const at::Tensor gate = x.narrow(1, 0, 72);
  const at::Tensor expected = gate / (1.0 + gate.neg().exp()) * x.narrow(1, 72, 72);
  const Tensors grads = AutogradOf(expected, d_out, {x});
  ExpectClose(SwigluForward(context_, Typed(x)), expected, "output");
  at::Tensor again;
  const at::Tensor d = SwigluBackward(context_, Typed(x), false, Typed(d_out).clone(), &again);
  ExpectClose(d, grads[0], "d_gate_up");
  ExpectClose(again, expected, "output again");
  const at::Tensor in_place = Typed(x).clone();
  const at::Tensor same = SwigluBackward(context_, in_place, true, Typed(d_out).clone(), &again);
  EXPECT_EQ(same.data_ptr(), in_place.data_ptr());
  EXPECT_TRUE(SameBits(same, d));
  ExpectClose(again, expected, "output again, in place");
}

TEST_P(LayersTest, Embedding) {
  const at::Tensor table = Leaf({13, 70}, 1), d_out = RandomTensor({kRows, 70}, 2);
  const at::Tensor tokens = at::arange(kRows, at::kLong).remainder(11);
  const at::Tensor expected = table.index_select(0, tokens);
  const Tensors grads = AutogradOf(expected, d_out, {table});
  EXPECT_TRUE(SameBits(EmbeddingForward(context_, Typed(table), tokens),
                       Typed(table).index_select(0, tokens)));
  at::Tensor d = Zeros({13, 70});
  EmbeddingBackward(context_, tokens, Typed(d_out), d);
  ExpectClose(d, grads[0], "d_table");
  EXPECT_ANY_THROW(EmbeddingForward(context_, Typed(table), tokens + 3));
}

TEST_P(LayersTest, LmHeadInChunksWithTemperature) {
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

// Forward and backward in one, against the two; the loss' gradient depends on what it is given.
TEST_P(LayersTest, LmHeadLearnsAsForwardAndBackwardDo) {
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
    const HeadOutput out = LmHeadLearn(
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

std::string PathName(const testing::TestParamInfo<Path>& info) {
  const char* const names[] = {"Kernels", "AtenFloat", "AtenDouble"};
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Paths, LayersTest,
                         testing::Values(Path::kKernels, Path::kAtenFloat, Path::kAtenDouble),
                         PathName);

}  // namespace
}  // namespace tritonrl
