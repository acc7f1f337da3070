// Tests of FP8 on every device, against the same rounding by ATen and GEMMs in fp64.

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "model/layers/fp8.h"
#include "model/layers/rms_norm.h"
#include "model/layers/swiglu.h"
#include "model/testing/device_fixture.h"
#include "model/transformer.h"

namespace tritonrl {
namespace {

class DeviceFp8Test : public DeviceFixture {
 protected:
  static at::Device device() { return at::Device(GetParam().device); }
  bool HardwareTakes(const at::Tensor& x) const {
    return x.is_cuda() && x.scalar_type() == at::kBFloat16 && context_.gemm(x).has_fp8();
  }
  // Returns the values that FP8 elements and their scale represent.
  static at::Tensor Meaning(const at::Tensor& numbers, const at::Tensor& scale) {
    const at::Tensor wide = numbers.to(at::kFloat);
    return (scale.defined() ? wide * scale : wide).cpu().to(at::kDouble);
  }
};

// Quantize gives exactly the numbers of ATen's casts: in full tiles, in partial tiles and with one
// row.
TEST_P(DeviceFp8Test, SameNumbersInBothLayouts) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 16},
                                   {133, 80},
                                   {256, 128},
                                   {300, 272},
                                   {130, 4096},
                                   {1300, 1040}}) {
    for (const Fp8Format format : {Fp8Format::kE4M3, Fp8Format::kE5M2}) {
      at::Tensor x = Numbers({rows, cols}, 1, 1e-3);
      x.mul_(RandomTensor({rows, 1}, 2).mul_(6).exp()).copy_(x.to(GetParam().type));  // subnormals
      const at::Tensor expected = RoundToFp8ByAten(x, format);
      const at::Tensor there = x.to(GetParam().type).to(device());
      const int64_t padded = HardwareTakes(there) ? (rows + 15) / 16 * 16 : rows;
      for (const Fp8Layouts copies : {Fp8Layouts::kRows, Fp8Layouts::kColumns, Fp8Layouts::kBoth}) {
        const Fp8Matrix got = Quantize(context_, there, format, copies);
        EXPECT_EQ(got.in_hardware(), HardwareTakes(there));
        EXPECT_EQ(got.rows.defined(), copies != Fp8Layouts::kColumns);
        EXPECT_EQ(got.columns.defined(), copies != Fp8Layouts::kRows);
        if (got.rows.defined()) {
          EXPECT_TRUE(Meaning(got.rows, got.scale).equal(expected));
        }
        if (!got.columns.defined()) continue;
        ASSERT_EQ(got.columns.sizes(), (std::vector<int64_t>{cols, padded}));
        const at::Tensor columns = Meaning(got.columns, got.scale);
        EXPECT_TRUE(columns.narrow(1, 0, rows).equal(expected.t())) << rows << " x " << cols;
        EXPECT_TRUE(columns.narrow(1, rows, padded - rows).eq(0).all().item<bool>());
      }
    }
  }
}

TEST_P(DeviceFp8Test, WhatIsNotFiniteMakesAllNan) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    at::Tensor x = Numbers({200, 144}, 1);
    x[150][143] = bad;
    const at::Tensor there = x.to(GetParam().type).to(device());
    const Fp8Matrix got = Quantize(context_, there, Fp8Format::kE5M2, Fp8Layouts::kBoth);
    EXPECT_TRUE(Meaning(got.rows, got.scale).isnan().all().item<bool>());
    EXPECT_TRUE(Meaning(got.columns, got.scale).narrow(1, 0, 200).isnan().all().item<bool>());
  }
}

// The amax that a kernel computes beside its result is the result's, and Quantize with it gives the
// same numbers as without.
TEST_P(DeviceFp8Test, KernelsKnowTheLargestElement) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{3, 64}, {700, 1040}, {1300, 4096}}) {
    const auto there = [&](const at::Tensor& x) { return x.to(GetParam().type).to(device()); };
    const at::Tensor x = there(Numbers({rows, cols}, 1)), w = there(Numbers({cols}, 2));
    const at::Tensor wide = there(Numbers({rows, 2 * cols}, 3));
    at::Tensor rstd, activated, amaxes[6];
    const at::Tensor y = RmsNormForward(context_, x, w, 1e-3, &rstd, &amaxes[0]);
    const at::Tensor again = RecomputeRmsNorm(context_, x, w, rstd, &amaxes[1]);
    at::Tensor d_x = there(Numbers({rows, cols}, 4));
    at::Tensor d_w = there(Numbers({cols}, 5)).to(at::kFloat);
    RmsNormBackward(context_, x, w, rstd, y, d_x, d_w, &amaxes[2]);
    const at::Tensor out = SwigluForward(context_, wide, &amaxes[3]);
    const at::Tensor d_wide = SwigluBackward(context_, wide, false, there(Numbers({rows, cols}, 6)),
                                             &activated, &amaxes[4], &amaxes[5]);
    at::Tensor alone;  // amax of the gradient when the output is not recomputed
    SwigluBackward(context_, wide, false, there(Numbers({rows, cols}, 6)), nullptr, &alone);
    ASSERT_EQ(alone.defined(), x.is_cuda());
    if (x.is_cuda()) {
      EXPECT_EQ(alone.item<int32_t>(), amaxes[4].item<int32_t>());
    }
    const Tensors written = {y, again, d_x, out, d_wide, activated};
    for (size_t i = 0; i < written.size(); ++i) {
      ASSERT_EQ(amaxes[i].defined(), x.is_cuda()) << i;
      if (!x.is_cuda()) continue;
      const float largest = written[i].abs().max().to(at::kFloat).item<float>();
      EXPECT_EQ(std::bit_cast<float>(amaxes[i].item<int32_t>()), largest) << i;
      for (const at::Tensor& amax : {at::Tensor(), amaxes[i]}) {
        const Fp8Matrix got =
            Quantize(context_, written[i], Fp8Format::kE4M3, Fp8Layouts::kRows, amax);
        EXPECT_TRUE(
            Meaning(got.rows, got.scale)
                .equal(RoundToFp8ByAten(written[i], Fp8Format::kE4M3).cpu().to(at::kDouble)))
            << i;
      }
    }
  }
}

// Some values of `rows` make the weight gradient's GEMM pad the dimension that it sums over.
TEST_P(DeviceFp8Test, Products) {
  const int64_t n = 96, k = 160;
  for (const int64_t rows : {1, 133, 256}) {
    const at::Tensor x = Numbers({rows, k}, 1), flat = Numbers({n * k}, 2, 0.1);
    const at::Tensor d = Numbers({rows, n}, 3, 1e-4), base = Numbers({rows, n}, 4);
    const at::Tensor sums = Numbers({n * k}, 5, 1e-3);
    for (const bool tuned : {false, true}) {
      const LayerContext context(2, false, {.autotune_gemm = tuned, .fp8_fast_gradients = tuned});
      const Fp8Format format = tuned ? Fp8Format::kE5M2 : Fp8Format::kE4M3;
      Compare(
          [&](const Runner& r) {
            const at::Tensor w = r.Put(flat).view({n, k}), x_there = r.Put(x);
            at::Tensor g = r.PutSums(sums).clone().view({n, k}), g_added = g.clone();
            const auto sides = [](const at::Tensor& all) {
              return FusedWeights{{all.narrow(0, 0, 64), all.narrow(0, 64, 32)}, all};
            };
            at::Tensor out = r.Empty({rows, n}), d_x = r.Empty({rows, k});
            Fp8Forward(r.context, x_there, {}, sides(w), out);
            const at::Tensor onto = Fp8ResidualAdd(r.context, r.Put(base), x_there, {}, w);
            Fp8Matrix copies = Quantize(r.context, r.Put(d), format, Fp8Layouts::kBoth);
            g.fill_(std::nan(""));
            Fp8BackwardWeight(r.context, &copies, x_there, {}, false, sides(g));
            Fp8BackwardInput(r.context, &copies, sides(w), d_x);
            copies = Quantize(r.context, r.Put(d), format, Fp8Layouts::kBoth);
            Fp8BackwardWeight(r.context, &copies, x_there, {}, true, sides(g_added));
            return Tensors{out, onto, d_x, g, g_added};
          },
          {"output", "onto", "d_x", "d_w", "d_w added"}, context);
    }
  }
}

struct Step {
  at::Tensor log_probs, gradients;
};

Step Learn(const Weights& weights, const Setting& setting, bool aten, bool fp8, double d = -0.01) {
  const at::Device device(setting.device);
  auto moved = std::make_shared<Weights>(weights.config(), device, setting.type);
  moved->flat().copy_(weights.flat());
  Transformer::Options options;
  options.force_aten = aten;
  options.gpu.fp8_projections = fp8;
  const Transformer model(weights.config(), moved, options);
  const PackedBatch batch =
      PackSequences(RandomTokens(weights.config(), {70, 1, 0, 133, 32}, 2), device);
  Gradients gradients(*moved);
  const ForwardResult result = model.ForwardBackward(
      batch, NextTokenTargets(batch), 1.0,
      [&](const at::Tensor& rows, const at::Tensor&, const at::Tensor&) {
        return at::full({rows.size(0)}, d, rows.options().dtype(at::kFloat));
      },
      Transformer::GradientWrite::kOverwrite, &gradients);
  return {result.log_probs.cpu(), gradients.flat().cpu()};
}

// The device's kernels are about as far from exact results as ATen with the same rounding.
TEST_P(DeviceFp8Test, TrainingStep) {
  for (const ModelFamily family : {ModelFamily::kQwen3, ModelFamily::kLlama}) {
    const ModelConfig config = KernelConfig(family, family == ModelFamily::kQwen3);
    const auto weights = SmallWeights(config, 1);
    const Step exact = Learn(*weights, {"cpu", at::kFloat}, false, false);
    const Step aten = Learn(*weights, {"cpu", GetParam().type}, true, true);
    const Step first = Learn(*weights, GetParam(), false, true);
    const Step second = Learn(*weights, GetParam(), false, true);
    const auto distance = [](const at::Tensor& a, const at::Tensor& b) {
      return (a - b).norm().item<double>();
    };
    EXPECT_LT(distance(first.gradients, exact.gradients),
              1.5 * distance(aten.gradients, exact.gradients));
    EXPECT_LT(distance(first.log_probs, exact.log_probs),
              1.5 * distance(aten.log_probs, exact.log_probs));
    // FP8 was in use: bf16 alone is nearer to the exact result.
    const Step without = Learn(*weights, GetParam(), false, false);
    EXPECT_GT(distance(first.gradients, exact.gradients),
              distance(without.gradients, exact.gradients));
    EXPECT_TRUE(SameBits(first.log_probs, second.log_probs));
    EXPECT_TRUE(SameBits(first.gradients, second.gradients));
    const Step bad = Learn(*weights, GetParam(), false, true, std::nan(""));
    EXPECT_TRUE(bad.gradients.norm().isnan().item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceFp8Test, testing::ValuesIn(Settings()), SettingName);

}  // namespace
}  // namespace tritonrl
