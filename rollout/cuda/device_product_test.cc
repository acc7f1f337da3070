// Products of few rows.

#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>

#include <limits>
#include <vector>

#include "model/cuda/kernels.h"
#include "model/cuda/skinny_product.h"
#include "rollout/cuda/device_fixture.h"

namespace tritonrl {
namespace {

class SkinnyProductTest : public DeviceTest {
 protected:
  void SetUp() override { ASSERT_TRUE(TakesSkinnyProducts()) << "on this GPU"; }

  // Normal numbers as bf16, drawn on the GPU: some of the matrices are large.
  static at::Tensor Drawn(at::IntArrayRef shape) {
    return at::randn(shape, at::TensorOptions(device()).dtype(at::kFloat)).to(at::kBFloat16);
  }

  // x [M, K] and weight [N, K] to `out`.
  static SkinnyProduct Product(const at::Tensor& x, const at::Tensor& weight, at::Tensor out) {
    return {.rows = x.size(0),
            .inner = x.size(1),
            .columns = weight.size(0),
            .x = x.const_data_ptr(),
            .weight = weight.const_data_ptr(),
            .out_type = out.scalar_type() == at::kFloat ? CudaType::kFloat : CudaType::kBFloat16,
            .out = out.data_ptr(),
            .stream = stream()};
  }

  static at::Tensor Launched(const SkinnyProduct& product, at::Tensor out) {
    SkinnyProduct at = product;
    at.out = out.data_ptr();
    LaunchSkinnyProduct(at);
    return out;
  }

  // RMSNorm of x's rows by the learner's kernel.
  static at::Tensor NormedRows(const at::Tensor& x, const at::Tensor& weight, float eps) {
    at::Tensor y = at::empty_like(x), rstd = Empty({x.size(0)}, at::kFloat);
    LaunchRmsNorm({x.size(0), x.size(1), CudaType::kBFloat16, stream()}, x.const_data_ptr(),
                  weight.const_data_ptr(), eps, y.data_ptr(), rstd.data_ptr<float>(), nullptr);
    return y;
  }
};

struct Sizes {
  int64_t inner, columns;
};
// Those of Qwen3-8B but for the head, and such that no tile, span or pass is full.
const std::vector<Sizes> kSizes = {{4096, 6144}, {4096, 4096}, {4096, 24576}, {12288, 4096},
                                   {8, 1},       {72, 17},     {1032, 100},   {520, 4100},
                                   {2560, 3000}, {64, 40000}};

TEST_P(SkinnyProductTest, ProductsAreThoseInDoublePrecision) {
  for (const auto& [inner, columns] : kSizes) {
    const at::Tensor weight = Drawn({columns, inner});
    const at::Tensor wide = weight.to(at::kDouble).t();
    for (const int64_t rows : {1, 3, 8, 9, 16}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << inner << " -> " << columns);
      const at::Tensor x = Drawn({rows, inner}), add = Drawn({rows, columns});
      const at::Tensor exact = at::matmul(x.to(at::kDouble), wide);
      // What rounding sums can add up to, of the sum of magnitudes.
      const at::Tensor slack = 2e-6 * at::matmul(x.to(at::kDouble).abs(), wide.abs());
      at::Tensor out = Empty({rows, columns}, at::kFloat);
      Launched(Product(x, weight, out), out);
      EXPECT_TRUE(((out - exact).abs() <= slack).all().item<bool>())
          << (out - exact).abs().max().item<double>();
      at::Tensor rounded = Empty({rows, columns}, at::kBFloat16);
      SkinnyProduct onto = Product(x, weight, rounded);
      onto.add = add.const_data_ptr();
      Launched(onto, rounded);
      const at::Tensor sum = exact + add;
      EXPECT_TRUE(((rounded - sum).abs() <= sum.abs() / 256 + slack).all().item<bool>())
          << (rounded - sum).abs().max().item<double>();
    }
  }
}

TEST_P(SkinnyProductTest, TheHeadOfQwen3IsThatInFp32) {
  const at::Tensor weight = Drawn({151936, 4096}), x = Drawn({2, 4096});
  at::Tensor out = Empty({2, 151936}, at::kFloat);
  Launched(Product(x, weight, out), out);
  for (const int64_t first : {0, 75968, 151936 - 1000}) {
    const at::Tensor exact =
        at::matmul(x.to(at::kDouble), weight.narrow(0, first, 1000).to(at::kDouble).t());
    EXPECT_LT((out.narrow(1, first, 1000) - exact).abs().max().item<double>(), 0.01) << first;
  }
}

TEST_P(SkinnyProductTest, ARowsBitsDependOnNothingButTheRow) {
  for (const Sizes& sizes : kSizes) {
    const int64_t inner = sizes.inner, columns = sizes.columns;
    SCOPED_TRACE(testing::Message() << inner << " -> " << columns);
    const at::Tensor weight = Drawn({columns, inner}), x = Drawn({16, inner});
    const auto run = [&](int64_t first, int64_t rows, int blocks_each) {
      at::Tensor out = Empty({rows, columns}, at::kFloat);
      SkinnyProduct at = Product(x.narrow(0, first, rows), weight, out);
      at.blocks_each = blocks_each;
      return Launched(at, out);
    };
    const at::Tensor all = run(0, 16, 1);
    EXPECT_TRUE(at::equal(run(0, 16, 1), all)) << "again";
    EXPECT_TRUE(at::equal(run(0, 16, 2), all)) << "by two blocks on a multiprocessor";
    for (int64_t row = 0; row < 16; ++row) {
      EXPECT_TRUE(at::equal(run(row, 1, 1)[0], all[row])) << "row " << row << " alone";
    }
    EXPECT_TRUE(at::equal(run(5, 7, 1), all.narrow(0, 5, 7)));
    EXPECT_TRUE(at::equal(run(3, 9, 2), all.narrow(0, 3, 9)));
  }
}

// NaN lies behind x, behind W and around the result.
TEST_P(SkinnyProductTest, ReadsAndWritesNothingOutside) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto options = at::TensorOptions(device()).dtype(at::kBFloat16);
  for (const Sizes& sizes : {Sizes{72, 17}, Sizes{1032, 100}, Sizes{4096, 4096}}) {
    const int64_t inner = sizes.inner, columns = sizes.columns;
    const at::Tensor weights = at::full({columns + 64, inner}, nan, options);
    const at::Tensor inputs = at::full({17, inner}, nan, options);
    weights.narrow(0, 0, columns).copy_(Drawn({columns, inner}));
    inputs.narrow(0, 0, 3).copy_(Drawn({3, inner}));
    const at::Tensor room = at::full({5, columns}, nan, options);
    const at::Tensor out = room.narrow(0, 1, 3);
    Launched(Product(inputs.narrow(0, 0, 3), weights.narrow(0, 0, columns), out), out);
    EXPECT_TRUE(out.isfinite().all().item<bool>()) << inner << " -> " << columns;
    EXPECT_TRUE(room[0].isnan().all().item<bool>() && room[4].isnan().all().item<bool>());
  }
}

TEST_P(SkinnyProductTest, NormInFrontHasTheBitsOfTheNormsKernel) {
  for (const auto& [inner, columns] : {Sizes{4096, 6144}, Sizes{1032, 100}, Sizes{256, 640}}) {
    const at::Tensor weight = Drawn({columns, inner}), norm = Drawn({inner});
    for (const int64_t rows : {1, 7, 8, 13, 16}) {
      const at::Tensor x = 3.0 * Drawn({rows, inner});
      at::Tensor fused = Empty({rows, columns}, at::kFloat), apart = at::empty_like(fused);
      SkinnyProduct at = Product(x, weight, fused);
      at.norm_weight = norm.const_data_ptr();
      at.eps = 1e-6f;
      Launched(at, fused);
      Launched(Product(NormedRows(x, norm, 1e-6f), weight, apart), apart);
      EXPECT_TRUE(at::equal(fused, apart)) << rows << " x " << inner;
    }
  }
}

TEST_P(SkinnyProductTest, SwigluBehindHasTheBitsOfItsKernel) {
  for (const auto& [inner, size] : {Sizes{4096, 12288}, Sizes{1032, 40}, Sizes{256, 640}}) {
    const at::Tensor weight = Drawn({2 * size, inner});
    for (const int64_t rows : {1, 5, 16}) {
      const at::Tensor x = 0.05 * Drawn({rows, inner});
      at::Tensor both = Empty({rows, 2 * size}, at::kBFloat16);
      at::Tensor fused = Empty({rows, size}, at::kBFloat16), apart = at::empty_like(fused);
      Launched(Product(x, weight, both), both);
      LaunchSwiglu({rows, size, CudaType::kBFloat16, stream()}, both.const_data_ptr(),
                   apart.data_ptr(), nullptr);
      SkinnyProduct at = Product(x, weight, fused);
      at.swiglu = true;
      Launched(at, fused);
      EXPECT_TRUE(at::equal(fused, apart)) << rows << " x " << inner;
    }
  }
}

// Each product reads what the one before has written, and writes where the one before that has
// read: launches that overlap must wait for both.
TEST_P(SkinnyProductTest, LaunchesThatOverlapWaitForWhatTheyRead) {
  constexpr int64_t kSize = 4096;
  constexpr int kLayers = 12;
  const at::Tensor weights = Drawn({kLayers, kSize, kSize}), norm = Drawn({kSize});
  const at::Tensor start = Drawn({4, kSize});
  const at::Tensor a = start.clone(), b = at::empty_like(a);
  const auto chain = [&](bool overlap) {
    for (int layer = 0; layer < kLayers; ++layer) {
      const at::Tensor &from = layer % 2 == 0 ? a : b, &to = layer % 2 == 0 ? b : a;
      SkinnyProduct at = Product(from, weights[layer], to);
      at.norm_weight = norm.const_data_ptr();
      at.eps = 1e-6f;
      at.add = from.const_data_ptr();
      at.overlap = overlap;
      LaunchSkinnyProduct(at);
    }
  };
  chain(false);
  const at::Tensor expected = a.clone();
  ASSERT_TRUE(expected.isfinite().all().item<bool>());
  const Graph graph([&] { chain(true); });
  for (int i = 0; i < 50; ++i) {
    for (const bool replay : {false, true}) {
      a.copy_(start);
      b.zero_();
      if (replay) {
        graph.Replay();
      } else {
        chain(true);
      }
      EXPECT_TRUE(at::equal(a, expected)) << i << (replay ? ", as a graph" : "");
    }
  }
}

TEST_P(SkinnyProductTest, RefusesWhatItDoesNotTake) {
  const at::Tensor x = Drawn({17, 64}), weight = Drawn({32, 64});
  at::Tensor out = Empty({17, 32}, at::kBFloat16), wide = Empty({1, 32}, at::kFloat);
  EXPECT_THROW(LaunchSkinnyProduct(Product(x, weight, out)), c10::Error);
  SkinnyProduct odd = Product(x.narrow(0, 0, 1), weight, wide);
  odd.inner = 60;
  EXPECT_THROW(LaunchSkinnyProduct(odd), c10::Error);
  SkinnyProduct onto = Product(x.narrow(0, 0, 1), weight, wide);
  onto.add = x.const_data_ptr();
  EXPECT_THROW(LaunchSkinnyProduct(onto), c10::Error);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SkinnyProductTest);
INSTANTIATE_TEST_SUITE_P(Gpus, SkinnyProductTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
