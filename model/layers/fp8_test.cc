// Tests of FP8 rounding, of linear layers in FP8 and of a small model that trains with them,
// compared with the same without FP8; on the CPU. device_fp8_test.cc compares GPUs with this.

#include "model/layers/fp8.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "model/testing/test_util.h"
#include "model/transformer.h"

namespace tritonrl {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float LargestOf(Fp8Format format) { return format == Fp8Format::kE4M3 ? 448.0f : 57344.0f; }

TEST(Fp8Scale, TheLeastPowerOfTwoThatDoesNotOverflow) {
  for (const Fp8Format format : {Fp8Format::kE4M3, Fp8Format::kE5M2}) {
    const float largest = LargestOf(format);
    for (const float amax : {0.0f, 1e-45f, 1e-38f, 1e-30f, 0.4375f, 1.0f, 1.74f, 1.75f, 1.7501f,
                             447.0f, 448.0f, 449.0f, 57344.0f, 57345.0f, 3.4e38f}) {
      const int e = Fp8Exponent(std::bit_cast<uint32_t>(amax), format);
      ASSERT_GE(e, -126);
      ASSERT_LE(e, 126);
      EXPECT_EQ(std::bit_cast<float>(PowerOfTwoBits(e)), std::ldexp(1.0f, e));
      EXPECT_LE(std::ldexp(static_cast<double>(amax), -e), largest) << amax;
      if (e == -126) continue;
      EXPECT_GT(std::ldexp(static_cast<double>(amax), 1 - e), largest) << amax;
    }
  }
  EXPECT_FALSE(IsFiniteAmax(std::bit_cast<uint32_t>(kInfinity)));
  EXPECT_FALSE(IsFiniteAmax(std::bit_cast<uint32_t>(std::nanf(""))));
  EXPECT_TRUE(IsFiniteAmax(std::bit_cast<uint32_t>(3.4e38f)));
}

class Fp8Test : public testing::TestWithParam<bool> {
 protected:
  at::Tensor Rounded(const at::Tensor& x, Fp8Format format) const {
    return Quantize(context_, x, format, Fp8Layouts::kRows).rows;
  }
  const LayerContext context_{2, GetParam()};
};

// Rounds every bf16 number within the format's range. The largest of them gives a scale of 1.
TEST_P(Fp8Test, RoundsAsTheFormatDoes) {
  for (const Fp8Format format : {Fp8Format::kE4M3, Fp8Format::kE5M2}) {
    const float largest = LargestOf(format);
    std::vector<float> values;
    for (uint32_t bits = 0; bits < 0x8000; ++bits) {
      const float x = std::bit_cast<float>(bits << 16);
      if (x <= largest) values.insert(values.end(), {x, -x});
    }
    while (values.size() % 16 != 0) values.push_back(largest);
    const at::Tensor x =
        at::from_blob(values.data(), {static_cast<int64_t>(values.size()) / 16, 16});
    const at::ScalarType type = format == Fp8Format::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
    EXPECT_TRUE(Rounded(x, format).equal(x.to(type).to(at::kFloat)));
    // Quantize divides by a power of two and multiplies by it again.
    const at::Tensor scaled = x * 0x1p-20;
    EXPECT_TRUE(Rounded(scaled, format).equal(x.to(type).to(at::kFloat) * 0x1p-20));
  }
}

TEST_P(Fp8Test, AnElementThatIsNotFiniteMakesAllNan) {
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    at::Tensor x = RandomTensor({40, 16}, 1).to(at::kFloat);
    x[7][3] = bad;
    EXPECT_TRUE(Rounded(x, Fp8Format::kE5M2).isnan().all().item<bool>()) << bad;
    EXPECT_TRUE(Rounded(x, Fp8Format::kE4M3).isnan().all().item<bool>()) << bad;
  }
}

// Results of a linear layer's GEMMs: `onto` of the residual add, `d_w_added` accumulated onto ones.
struct Products {
  at::Tensor out, onto, d_x, d_w, d_w_added;
};

class Fp8LinearTest : public Fp8Test {
 protected:
  static constexpr int64_t kRows = 133, kN = 96, kK = 160;

  Products Run(const at::Tensor& x, const at::Tensor& w, const at::Tensor& d) const {
    const auto typed = [](const at::Tensor& t) { return t.to(at::kFloat); };
    const at::Tensor weight = typed(w);
    const FusedWeights weights = {{weight.narrow(0, 0, 64), weight.narrow(0, 64, 32)}, weight};
    Products result;
    result.out = at::empty({kRows, kN}, at::kFloat);
    Fp8Forward(context_, typed(x), {}, weights, result.out);
    result.onto = Fp8ResidualAdd(context_, typed(d), typed(x), {}, weight);
    result.d_x = at::empty({kRows, kK}, at::kFloat);
    result.d_w = at::full({kN, kK}, std::nan(""), at::kFloat);
    result.d_w_added = at::full({kN, kK}, 1.0, at::kFloat);
    for (const bool add : {false, true}) {
      Fp8Matrix copies = Fp8Gradient(context_, typed(d), {});
      const at::Tensor& to = add ? result.d_w_added : result.d_w;
      const FusedWeights gradients = {{to.narrow(0, 0, 64), to.narrow(0, 64, 32)}, to};
      Fp8BackwardWeight(context_, &copies, typed(x), {}, add, gradients);
      Fp8BackwardInput(context_, &copies, weights, result.d_x);
      EXPECT_FALSE(copies.rows.defined() || copies.columns.defined());
    }
    return result;
  }

  // Each GEMM's error is at most the effect of the operands' rounding on the sum of |a b|. A normal
  // number is off by at most a relative 2^-4 in E4M3 and 2^-3 in E5M2, a subnormal one by half a
  // step.
  static void ExpectBound(const at::Tensor& actual, const at::Tensor& a, Fp8Format format,
                          const at::Tensor& b, const char* what) {
    const auto error = [](const at::Tensor& x, Fp8Format kind) {
      const float amax = x.abs().max().item<float>();
      const int e = Fp8Exponent(std::bit_cast<uint32_t>(amax), kind);
      const double half = std::ldexp(0.5, -Fp8MantissaBits(kind));
      return x.abs() * half + std::ldexp(half, Fp8MinExponent(kind) + e);
    };
    const at::Tensor da = error(a, format), db = error(b, Fp8Format::kE4M3);
    const at::Tensor bound =
        at::matmul(da, b.abs()) + at::matmul(a.abs(), db) + at::matmul(da, db) + 1e-6;
    const at::Tensor excess = (actual.to(at::kDouble) - at::matmul(a, b)).abs() - bound;
    EXPECT_LT(excess.max().item<double>(), 0) << what;
  }
};

TEST_P(Fp8LinearTest, ErrorsAreThoseOfRounding) {
  const at::Tensor x = RandomTensor({kRows, kK}, 1), w = RandomTensor({kN, kK}, 2, 0.05);
  const at::Tensor d = RandomTensor({kRows, kN}, 3, 1e-4);
  const Products got = Run(x, w, d);
  ExpectBound(got.out, x, Fp8Format::kE4M3, w.t(), "output");
  ExpectBound(got.onto - d, x, Fp8Format::kE4M3, w.t(), "onto");
  ExpectBound(got.d_x, d, Fp8Format::kE4M3, w, "d_x");
  ExpectBound(got.d_w, d.t(), Fp8Format::kE4M3, x, "d_w");
  EXPECT_LT(MaxDifference(got.d_w_added, got.d_w + 1.0), 1e-6);
  // Rounding errors partly cancel in long sums: the result is far better than the bound, but not as
  // good as without rounding.
  const auto relative = [](const at::Tensor& actual, const at::Tensor& exact) {
    return ((actual.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
  };
  for (const double error :
       {relative(got.out, at::matmul(x, w.t())), relative(got.d_x, at::matmul(d, w)),
        relative(got.d_w, at::matmul(d.t(), x))}) {
    EXPECT_LT(error, 0.05);
    EXPECT_GT(error, 0.02);
  }
}

TEST_P(Fp8LinearTest, ProductsOfTheRoundedNumbersAreExact) {
  const at::Tensor x = RandomTensor({kRows, kK}, 1), w = RandomTensor({kN, kK}, 2);
  const at::Tensor d = RandomTensor({kRows, kN}, 3);
  const auto rounded = [](const at::Tensor& t, Fp8Format format) {
    return RoundToFp8ByAten(t.to(at::kFloat), format).to(at::kDouble);
  };
  const at::Tensor rx = rounded(x, Fp8Format::kE4M3), rw = rounded(w, Fp8Format::kE4M3);
  const at::Tensor rd = rounded(d, Fp8Format::kE4M3);
  const Products got = Run(x, w, d);
  EXPECT_LT(RelativeDifference(got.out, at::matmul(rx, rw.t())), 1e-5);
  EXPECT_LT(RelativeDifference(got.onto, at::matmul(rx, rw.t()) + d), 1e-5);
  EXPECT_LT(RelativeDifference(got.d_x, at::matmul(rd, rw)), 1e-5);
  EXPECT_LT(RelativeDifference(got.d_w, at::matmul(rd.t(), rx)), 1e-5);
}

TEST_P(Fp8LinearTest, ZerosAndOutliers) {
  const at::Tensor w = RandomTensor({kN, kK}, 2), zeros = at::zeros({kRows, kK}, at::kDouble);
  const at::Tensor d = RandomTensor({kRows, kN}, 3);
  const Products none = Run(zeros, w, at::zeros({kRows, kN}, at::kDouble));
  for (const at::Tensor& result : {none.out, none.d_x, none.d_w}) {
    EXPECT_EQ(result.abs().max().item<double>(), 0);
  }
  // One input is 2^20 times as large as the others: the others are lost beside it, but its own
  // value is kept.
  at::Tensor x = RandomTensor({kRows, kK}, 1);
  x[5][9] = 0x1p20;
  at::Tensor spike = RandomTensor({kRows, kN}, 4);
  spike[8][2] = 1e30;
  const Products got = Run(x, w, spike);
  ExpectBound(got.out, x, Fp8Format::kE4M3, w.t(), "output");
  ExpectBound(got.d_x, spike, Fp8Format::kE4M3, w, "d_x");
  ExpectBound(got.d_w, spike.t(), Fp8Format::kE4M3, x, "d_w");
  EXPECT_TRUE(got.d_w.isfinite().all().item<bool>());
}

TEST_P(Fp8LinearTest, WhatIsNotFiniteReachesEveryResult) {
  const at::Tensor x = RandomTensor({kRows, kK}, 1), w = RandomTensor({kN, kK}, 2);
  for (const float bad : {kInfinity, std::nanf("")}) {
    at::Tensor d = RandomTensor({kRows, kN}, 3), bad_x = x.clone();
    d[100][7] = bad;
    bad_x[3][4] = bad;
    const Products gradient = Run(x, w, d), input = Run(bad_x, w, RandomTensor({kRows, kN}, 3));
    for (const at::Tensor& result : {gradient.d_x, gradient.d_w, input.out, input.d_w}) {
      EXPECT_TRUE(result.isnan().all().item<bool>()) << bad;
    }
  }
}

// A gradient 2^-24 times the largest one becomes zero in E4M3 and is kept in E5M2.
TEST_P(Fp8LinearTest, TheFormatOfGradientsIsAnOption) {
  at::Tensor d = at::full({16, 16}, 0x1p-24, at::kFloat);
  d[0][0] = 1.0;
  EXPECT_EQ(Fp8Gradient(context_, d, {}).rows[1][1].item<float>(), 0);
  const LayerContext wide(1, GetParam(), {.fp8_gradients = Fp8Format::kE5M2});
  const Fp8Matrix copies = Fp8Gradient(wide, d, {});
  EXPECT_EQ(copies.rows[1][1].item<float>(), 0x1p-24f);
  EXPECT_EQ(copies.columns[1][1].item<float>(), 0x1p-24f);
}

// Trains whole models.
class Fp8ModelTest : public Fp8Test {
 protected:
  static ModelConfig Config(int64_t hidden = 64) {
    ModelConfig config = SmallConfig();
    config.hidden_size = hidden;
    config.head_dim = 16;
    config.intermediate_size = 96;
    return config;
  }
  Transformer Model(std::shared_ptr<Weights> weights, bool fp8) const {
    Transformer::Options options;
    options.cpu_threads = 2;
    options.force_aten = GetParam();
    options.gpu.fp8_projections = fp8;
    return Transformer(weights->config(), weights, options);
  }
  struct Step {
    at::Tensor log_probs, gradients;
  };
  Step Learn(const Transformer& model, const at::Tensor& d) const {
    Gradients gradients(*model.weights());
    const ForwardResult result = model.ForwardBackward(
        batch_, NextTokenTargets(batch_), 1.0,
        [&](const at::Tensor& rows, const at::Tensor&, const at::Tensor&) {
          return d.index_select(0, rows);
        },
        Transformer::GradientWrite::kAccumulate, &gradients);
    return {result.log_probs, gradients.flat()};
  }
  static double Cosine(const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
    return ((x * y).sum() / (x.norm() * y.norm())).item<double>();
  }

  const PackedBatch batch_ = PackSequences(RandomTokens(Config(), {60, 1, 0, 77, 32}, 2));
  const at::Tensor d_ = at::full({batch_.num_tokens()}, -1.0 / 128, at::kFloat);
};

TEST_P(Fp8ModelTest, LossAndGradientsAreNearThoseWithout) {
  const auto weights = SmallWeights(Config(), 1);
  const Transformer plain = Model(weights, false), fp8 = Model(weights, true);
  const Step expected = Learn(plain, d_), actual = Learn(fp8, d_);
  const double loss = expected.log_probs.mean().item<double>();
  EXPECT_NEAR(actual.log_probs.mean().item<double>(), loss, 0.02 * std::abs(loss));
  EXPECT_FALSE(SameBits(actual.log_probs, expected.log_probs));
  // The weights are random and large here, so each layer's rounding error propagates through all
  // later layers.
  EXPECT_GT(Cosine(actual.gradients, expected.gradients), 0.93);
  EXPECT_LT(Cosine(actual.gradients, expected.gradients), 0.99999);
  EXPECT_TRUE(SameBits(Learn(fp8, d_).gradients, actual.gradients));
}

TEST_P(Fp8ModelTest, RecomputedIsTheSame) {
  Transformer model = Model(SmallWeights(Config(), 1), true);
  const Step expected = Learn(model, d_);
  for (const LayerTensor tensor : kLayerTensors) {
    for (const RecomputeSet set :
         {RecomputeSet().With(tensor), RecomputeSet::All().Without(tensor)}) {
      model.set_recompute(std::vector<RecomputeSet>(model.config().num_layers, set));
      const Step actual = Learn(model, d_);
      ASSERT_TRUE(SameBits(actual.log_probs, expected.log_probs));
      ASSERT_TRUE(SameBits(actual.gradients, expected.gradients));
    }
  }
}

TEST_P(Fp8ModelTest, SizesThatHardwareDoesNotTakeRunWithout) {
  ModelConfig config = Config(40);
  config.head_dim = 20;
  const auto weights = SmallWeights(config, 1);
  const Step expected = Learn(Model(weights, false), d_), actual = Learn(Model(weights, true), d_);
  EXPECT_TRUE(SameBits(actual.log_probs, expected.log_probs));
  EXPECT_TRUE(SameBits(actual.gradients, expected.gradients));
}

TEST_P(Fp8ModelTest, GenerationRunsWithout) {
  const auto weights = SmallWeights(Config(), 1);
  std::vector<at::Tensor> logits;
  for (const bool fp8 : {false, true}) {
    const Transformer model = Model(weights, fp8);
    PagedKvCache cache(model.config(), 2, at::kCPU, at::kFloat);
    const auto tokens = RandomTokens(model.config(), {20}, 3);
    const PackedBatch prompt = PackSequences(tokens);
    const std::vector<int32_t> pages = {0, 1}, next = {5};
    logits.push_back(model.Step({SliceOf(tokens[0], 0, pages)}, &cache));
    logits.push_back(model.Step({SliceOf(next, 20, pages)}, &cache));
    logits.push_back(model.Logits(prompt));
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(SameBits(logits[i], logits[i + 3])) << i;
}

// The gradients stay not finite, so that the learner detects it and skips the step.
TEST_P(Fp8ModelTest, AGradientThatIsNotFiniteStaysOne) {
  const auto weights = SmallWeights(Config(), 1);
  const Transformer model = Model(weights, true);
  for (const float bad : {kInfinity, std::nanf("")}) {
    at::Tensor d = d_.clone();
    d[30] = bad;
    const at::Tensor gradients = Learn(model, d).gradients;
    EXPECT_TRUE(gradients.norm().isnan().item<bool>()) << bad;
    for (const ParameterInfo& info : weights->layout().parameters) {
      if (!info.decay()) continue;
      EXPECT_FALSE(gradients.narrow(0, info.offset, info.size).isfinite().any().item<bool>() &&
                   info.name.find("layers") != std::string::npos)
          << info.name;
    }
  }
}

std::string PathName(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Aten" : "Kernels";
}
INSTANTIATE_TEST_SUITE_P(Paths, Fp8Test, testing::Bool(), PathName);
INSTANTIATE_TEST_SUITE_P(Paths, Fp8LinearTest, testing::Bool(), PathName);
INSTANTIATE_TEST_SUITE_P(Paths, Fp8ModelTest, testing::Bool(), PathName);

}  // namespace
}  // namespace tritonrl
