// FP8 keys, values and weights on a GPU: the numbers that kernels write, and GEMMs of them.

#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>
#include <vector>

#include "model/cuda/fused/kernels.h"
#include "model/cuda/gemm/gemm.h"
#include "model/layers/fp8.h"
#include "rollout/cuda/step_kernels.h"
#include "rollout/cuda/testing/device_fixture.h"

namespace tritonrl {
namespace {

class Fp8KernelTest : public DeviceTest {
 protected:
  struct Rows {
    at::Tensor numbers, scales;
    at::Tensor Meaning() const { return numbers.to(at::kFloat) * scales.unsqueeze(1); }
  };
  static Rows Quantized(const at::Tensor& x) {
    Rows rows = {Empty(x.sizes(), at::kFloat8_e4m3fn), Empty({x.size(0)}, at::kFloat)};
    LaunchQuantizeRows({x.size(0), x.size(1), CudaType::kBFloat16, stream()}, x.const_data_ptr(),
                       rows.numbers.data_ptr(), rows.scales.data_ptr<float>());
    return rows;
  }
};

TEST_P(Fp8KernelTest, RowsAreRoundedOneByOne) {
  for (const int64_t cols : {16, 80, 4096, 12288}) {
    const at::Tensor x = Numbers({7, cols}, 1) * at::randn({7, 1}, device()).mul_(6).exp();
    const at::Tensor rows = x.to(at::kBFloat16);
    rows[3].zero_();
    std::vector<at::Tensor> expected;
    for (int64_t r = 0; r < 7; ++r) {
      expected.push_back(RoundToFp8ByAten(rows[r].to(at::kFloat), Fp8Format::kE4M3));
    }
    EXPECT_TRUE(at::equal(Quantized(rows).Meaning(), at::stack(expected))) << cols;
    rows[5][cols - 1] = std::numeric_limits<double>::infinity();
    const at::Tensor broken = Quantized(rows).Meaning();
    EXPECT_TRUE(broken[5].isnan().all().item<bool>());
    EXPECT_TRUE(at::equal(broken.narrow(0, 0, 5), at::stack(expected).narrow(0, 0, 5)));
    EXPECT_TRUE(at::equal(broken[6], expected[6]));
  }
}

// Quantizing in the launch of a norm or SwiGLU gives the same numbers as quantizing after it.
TEST_P(Fp8KernelTest, RowsAreRoundedAsTheyAreMade) {
  for (const int64_t cols : {64, 4096, 12288}) {
    const int64_t count = 5;
    const CudaRows rows = {count, cols, CudaType::kBFloat16, stream()};
    const at::Tensor x = Numbers({count, cols}, 1, 3.0), weight = Numbers({cols}, 2);
    const at::Tensor gate_up = Numbers({count, 2 * cols}, 3, 2.0);
    at::Tensor normed = at::empty_like(x), gated = at::empty_like(x);
    at::Tensor rstd = Empty({count}, at::kFloat);
    LaunchRmsNorm(rows, x.const_data_ptr(), weight.const_data_ptr(), 1e-6f, normed.data_ptr(),
                  rstd.data_ptr<float>(), nullptr);
    LaunchSwiglu(rows, gate_up.const_data_ptr(), gated.data_ptr(), nullptr);
    Rows of_normed = Quantized(at::zeros_like(x)), of_gated = Quantized(at::zeros_like(x));
    LaunchNormQuantizeRows(rows, x.const_data_ptr(), weight.const_data_ptr(), 1e-6f,
                           of_normed.numbers.data_ptr(), of_normed.scales.data_ptr<float>());
    LaunchSwigluQuantizeRows(rows, gate_up.const_data_ptr(), of_gated.numbers.data_ptr(),
                             of_gated.scales.data_ptr<float>());
    EXPECT_TRUE(at::equal(of_normed.Meaning(), Quantized(normed).Meaning())) << cols;
    EXPECT_TRUE(at::equal(of_gated.Meaning(), Quantized(gated).Meaning())) << cols;
  }
}

// FP8 keys and values are the rounded keys and values of the bf16 kernel.
TEST_P(Fp8KernelTest, KeysAndValuesAreRoundedAndSaturate) {
  for (const CacheHeads& of : {CacheHeads{32, 8, 128}, CacheHeads{4, 2, 64}}) {
    const int64_t rows = 6, keys = of.key_heads, dim = of.head_dim;
    const at::Tensor qkv = Numbers({rows, (of.query_heads + 2 * keys) * dim}, 1);
    const int64_t first_value = (of.query_heads + keys) * dim;
    qkv[2][first_value] = 1000;
    qkv[2][first_value + 1] = -std::numeric_limits<double>::infinity();
    qkv[2][first_value + 2] = std::nan("");
    const at::Tensor weight = Numbers({dim}, 2), angles = RandomTensor({50, dim / 2}, 4, 3.0);
    const at::Tensor cos = angles.cos().to(at::kFloat).to(device());
    const at::Tensor sin = angles.sin().to(at::kFloat).to(device());
    const at::Tensor positions = Ints({5, 0, 49, 7, 8, 31}), slots = Ints({5, 4, 3, 2, 1, 0});
    at::Tensor queries[2], pools[2][2];
    for (const bool fp8 : {false, true}) {
      CacheHeads shape = of;
      shape.type = fp8 ? CacheType::kE4M3 : CacheType::kBFloat16;
      queries[fp8] = Empty({rows, of.query_heads, dim}, at::kBFloat16);
      for (at::Tensor& pool : pools[fp8]) {
        pool = Empty({rows, keys, dim}, fp8 ? at::kFloat8_e4m3fn : at::kBFloat16);
      }
      LaunchQkvToCache({.shape = shape,
                        .rows = rows,
                        .qkv = qkv.const_data_ptr(),
                        .q_weight = weight.const_data_ptr(),
                        .k_weight = weight.const_data_ptr(),
                        .eps = 1e-6f,
                        .cos = cos.const_data_ptr<float>(),
                        .sin = sin.const_data_ptr<float>(),
                        .positions = positions.const_data_ptr<int32_t>(),
                        .page_slots = slots.const_data_ptr<int32_t>(),
                        .queries = queries[fp8].data_ptr(),
                        .keys = pools[fp8][0].data_ptr(),
                        .values = pools[fp8][1].data_ptr(),
                        .stream = stream()});
    }
    EXPECT_TRUE(at::equal(queries[0], queries[1]));
    const auto bytes = [](const at::Tensor& x) { return x.view(at::kByte); };
    EXPECT_TRUE(at::equal(bytes(pools[1][0]), bytes(pools[0][0].to(at::kFloat8_e4m3fn))));
    const at::Tensor row = pools[1][1][3][0].to(at::kFloat).cpu();
    EXPECT_EQ(row[0].item<float>(), 448);
    EXPECT_EQ(row[1].item<float>(), -448);
    EXPECT_TRUE(std::isnan(row[2].item<float>()));
    const at::Tensor values = pools[0][1].clone();
    values[3][0].slice(0, 0, 3).zero_();
    pools[1][1][3][0].slice(0, 0, 3).view(at::kByte).zero_();
    EXPECT_TRUE(at::equal(bytes(pools[1][1]), bytes(values.to(at::kFloat8_e4m3fn))));
  }
}

TEST_P(Fp8KernelTest, ProductsTakeAFactorForEachRow) {
  struct Sizes {
    int64_t rows, inner, columns;
  };
  for (const Sizes& sizes : std::vector<Sizes>{
           {16, 4096, 6144}, {48, 4096, 4096}, {256, 12288, 4096}, {2048, 256, 512}}) {
    SCOPED_TRACE(testing::Message()
                 << sizes.rows << " x " << sizes.inner << " x " << sizes.columns);
    const at::Tensor factors = at::randn({sizes.rows, 1}, device()).mul_(2).exp();
    const at::Tensor x = (Numbers({sizes.rows, sizes.inner}, 1) * factors).to(at::kBFloat16);
    const Rows a = Quantized(x), b = Quantized(Numbers({sizes.columns, sizes.inner}, 2, 0.02));
    const at::Tensor add = Numbers({sizes.rows, sizes.columns}, 3);
    for (const bool adds : {false, true}) {
      CudaGemm gemm(device(), /*autotune=*/false);
      at::Tensor out = Empty({sizes.rows, sizes.columns}, at::kBFloat16);
      const Fp8Scales scales = {.a = a.scales.const_data_ptr<float>(),
                                .b = b.scales.const_data_ptr<float>(),
                                .per_row = true};
      gemm.Multiply(a.numbers, b.numbers.t(), adds ? &add : nullptr, out, &scales);
      at::Tensor expected = a.Meaning().to(at::kDouble).matmul(b.Meaning().to(at::kDouble).t());
      if (adds) expected = expected + add.to(at::kDouble);
      // Relative to each row, because the rows have different magnitudes.
      const at::Tensor error =
          (out.to(at::kDouble) - expected).norm(2, {1}) / expected.norm(2, {1});
      EXPECT_LT(error.max().item<double>(), 0.004) << adds;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, Fp8KernelTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
