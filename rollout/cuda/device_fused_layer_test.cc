// The megakernel: a layer's GEMMs for few rows.

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model/cuda/fused/kernels.h"
#include "model/cuda/gemm/megakernel.h"
#include "rollout/cuda/testing/device_fixture.h"

namespace tritonrl {
namespace {

constexpr float kEps = 1e-6f;

// Sizes of a layer's GEMMs: attention to hidden, hidden to twice mlp, mlp to hidden, hidden to qkv.
struct Sizes {
  int64_t attention, hidden, mlp, qkv;
};
const std::vector<Sizes> kSizes = {{4096, 4096, 12288, 6144},
                                   {2048, 1024, 3072, 4096},
                                   {512, 512, 512, 16},
                                   {1024, 2560, 1536, 48}};

class MegakernelTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(SupportsMegakernel()) << "on this GPU";
    at::manual_seed(11);  // so that the numbers do not depend on earlier tests
  }

  // Normally distributed numbers in bf16, drawn on the GPU because some matrices are large.
  static at::Tensor Drawn(at::IntArrayRef shape, double scale = 1) {
    return (scale * at::randn(shape, at::TensorOptions(device()).dtype(at::kFloat)))
        .to(at::kBFloat16);
  }

  struct Layer {
    explicit Layer(const Sizes& s)
        : sizes(s),
          o(Drawn({s.hidden, s.attention}, 0.02)),
          gate_up(Drawn({2 * s.mlp, s.hidden}, 0.02)),
          down(Drawn({s.hidden, s.mlp}, 0.02)),
          qkv(Drawn({s.qkv, s.hidden}, 0.02)),
          post_norm(Drawn({s.hidden})),
          next_norm(Drawn({s.hidden})),
          workspace(at::zeros({MegakernelWorkspaceBytes()},
                              at::TensorOptions(device()).dtype(at::kByte))) {}
    Sizes sizes;
    at::Tensor o, gate_up, down, qkv, post_norm, next_norm, workspace;
  };

  // The activations that a layer's megakernel reads and writes.
  struct Rows {
    at::Tensor attention, x, middle, inner, qkv;
  };
  static Rows RowsOf(const Layer& w, const at::Tensor& attention, const at::Tensor& x) {
    const int64_t rows = x.size(0);
    return {attention, x.clone(), Empty({rows, w.sizes.hidden}, at::kBFloat16),
            Empty({rows, w.sizes.mlp}, at::kBFloat16), Empty({rows, w.sizes.qkv}, at::kBFloat16)};
  }

  static void Launch(const Layer& w, const Rows& at, bool overlap = false) {
    const Sizes& s = w.sizes;
    MegakernelPlan chain = {.rows = at.x.size(0),
                            .eps = kEps,
                            .workspace = w.workspace.data_ptr(),
                            .overlap = overlap,
                            .stream = stream()};
    chain.gemms = {{.inner = s.attention,
                    .columns = s.hidden,
                    .x = at.attention.const_data_ptr(),
                    .weight = w.o.const_data_ptr(),
                    .add = at.x.const_data_ptr(),
                    .out = at.middle.data_ptr()},
                   {.inner = s.hidden,
                    .columns = 2 * s.mlp,
                    .x = at.middle.const_data_ptr(),
                    .weight = w.gate_up.const_data_ptr(),
                    .norm_weight = w.post_norm.const_data_ptr(),
                    .swiglu = true,
                    .out = at.inner.data_ptr()},
                   {.inner = s.mlp,
                    .columns = s.hidden,
                    .x = at.inner.const_data_ptr(),
                    .weight = w.down.const_data_ptr(),
                    .add = at.middle.const_data_ptr(),
                    .out = at.x.data_ptr()},
                   {.inner = s.hidden,
                    .columns = s.qkv,
                    .x = at.x.const_data_ptr(),
                    .weight = w.qkv.const_data_ptr(),
                    .norm_weight = w.next_norm.const_data_ptr(),
                    .out = at.qkv.data_ptr()}};
    LaunchMegakernel(chain);
  }

  // RMSNorm of x's rows by the learner's kernel.
  static at::Tensor NormedRows(const at::Tensor& x, const at::Tensor& weight) {
    at::Tensor y = at::empty_like(x), rstd = Empty({x.size(0)}, at::kFloat);
    LaunchRmsNorm({x.size(0), x.size(1), CudaType::kBFloat16, stream()}, x.const_data_ptr(),
                  weight.const_data_ptr(), kEps, y.data_ptr(), rstd.data_ptr<float>(), nullptr);
    return y;
  }

  // x W^T in double precision. Magnitude: the same with absolute values.
  static at::Tensor Exact(const at::Tensor& x, const at::Tensor& weight) {
    return at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t());
  }
  static at::Tensor Magnitude(const at::Tensor& x, const at::Tensor& weight) {
    return at::matmul(x.to(at::kDouble).abs(), weight.to(at::kDouble).abs().t());
  }
  // Expects that `found` is `exact` up to rounding to bf16 and the rounding of sums (`slack`).
  static void ExpectNear(const at::Tensor& found, const at::Tensor& exact, const at::Tensor& slack,
                         const char* what) {
    EXPECT_TRUE(((found - exact).abs() <= exact.abs() / 256 + slack).all().item<bool>())
        << what << ": " << (found - exact).abs().max().item<double>();
  }
};

// Compares each GEMM with the exact result for the input that the megakernel itself computed.
TEST_P(MegakernelTest, EachGemmMatchesDoublePrecision) {
  for (const Sizes& sizes : kSizes) {
    const Layer w(sizes);
    for (const int64_t rows : {1, 3, 8, 9, 16, 17, 24, 31, 32}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << sizes.hidden);
      const at::Tensor attention = Drawn({rows, sizes.attention}), x = Drawn({rows, sizes.hidden});
      const Rows at = RowsOf(w, attention, x);
      Launch(w, at);
      ExpectNear(at.middle, Exact(attention, w.o) + x, 2e-6 * Magnitude(attention, w.o), "o");
      // A few elements of a norm are at the edge of rounding and differ by one step of bf16.
      const at::Tensor normed = NormedRows(at.middle, w.post_norm);
      const at::Tensor both = Exact(normed, w.gate_up);
      const at::Tensor gate = both.narrow(1, 0, sizes.mlp);
      const at::Tensor up = both.narrow(1, sizes.mlp, sizes.mlp);
      const at::Tensor inner = gate * at::sigmoid(gate) * up;
      // Four roundings, of which silu can double the first.
      const at::Tensor spread = inner.abs() / 64 + 0.01 * up.abs() + 0.01 * gate.abs();
      ExpectNear(at.inner, inner, spread, "gate_up");
      ExpectNear(at.x, Exact(at.inner, w.down) + at.middle, 2e-6 * Magnitude(at.inner, w.down),
                 "down");
      const at::Tensor next = NormedRows(at.x, w.next_norm);
      ExpectNear(at.qkv, Exact(next, w.qkv), 1e-4 * Magnitude(next, w.qkv), "qkv");
    }
  }
}

TEST_P(MegakernelTest, ARowsBitsDependOnNothingButTheRow) {
  for (const Sizes& sizes : kSizes) {
    SCOPED_TRACE(sizes.hidden);
    const Layer w(sizes);
    const at::Tensor attention = Drawn({32, sizes.attention}), x = Drawn({32, sizes.hidden});
    const auto run = [&](int64_t first, int64_t rows, bool overlap) {
      const Rows at = RowsOf(w, attention.narrow(0, first, rows), x.narrow(0, first, rows));
      Launch(w, at, overlap);
      return at;
    };
    const auto expect_same = [](const Rows& part, const Rows& all, int64_t first) {
      const int64_t rows = part.x.size(0);
      EXPECT_TRUE(at::equal(part.x, all.x.narrow(0, first, rows))) << first << ", " << rows;
      EXPECT_TRUE(at::equal(part.qkv, all.qkv.narrow(0, first, rows))) << first << ", " << rows;
    };
    const Rows all = run(0, 32, false);
    ASSERT_TRUE(all.qkv.isfinite().all().item<bool>());
    expect_same(run(0, 32, true), all, 0);
    for (int64_t row = 0; row < 32; row += 3) expect_same(run(row, 1, row % 2 == 0), all, row);
    expect_same(run(5, 7, false), all, 5);
    expect_same(run(2, 30, true), all, 2);
    for (const int64_t rows : {8, 9, 16, 17, 24}) {
      SCOPED_TRACE(rows);
      expect_same(run(0, rows, false), all, 0);
      expect_same(run(32 - rows, rows, true), all, 32 - rows);
    }
  }
}

// Each launch reads the results of the launch before.
TEST_P(MegakernelTest, LaunchesThatOverlapWaitForWhatTheyRead) {
  const Sizes sizes = {4096, 4096, 12288, 4096};
  const Layer first(sizes), second(sizes);
  for (const int64_t rows : {4, 13, 32}) {
    SCOPED_TRACE(rows);
    const at::Tensor start = Drawn({rows, 4096}), attention = Drawn({rows, 4096});
    const Rows at = RowsOf(first, attention, start);
    const auto layers = [&](bool overlap) {
      for (int i = 0; i < 6; ++i) {
        Launch(i % 2 == 0 ? first : second,
               {i == 0 ? attention : at.qkv, at.x, at.middle, at.inner, at.qkv}, overlap);
      }
    };
    layers(false);
    const at::Tensor expected = at.x.clone();
    ASSERT_TRUE(expected.isfinite().all().item<bool>());
    at.x.copy_(start);
    const Graph graph([&] { layers(true); });
    for (int i = 0; i < 50; ++i) {
      for (const bool replay : {false, true}) {
        at.x.copy_(start);
        at.qkv.zero_();
        at.inner.zero_();
        if (replay) {
          graph.Replay();
        } else {
          layers(true);
        }
        EXPECT_TRUE(at::equal(at.x, expected)) << i << (replay ? ", as a graph" : "");
      }
    }
  }
}

// Blocks must read each other's results only after the barrier that orders them.
TEST_P(MegakernelTest, EachLaunchGivesTheSameBits) {
  const Layer w(kSizes[0]);
  for (const int64_t rows : {1, 8, 11, 16, 24, 32}) {
    const at::Tensor attention = Drawn({rows, 4096}), x = Drawn({rows, 4096});
    const Rows first = RowsOf(w, attention, x);
    Launch(w, first);
    int wrong[4] = {};
    std::string where;
    for (int i = 0; i < 300; ++i) {
      const Rows again = RowsOf(w, attention, x);
      Launch(w, again, i % 2 == 0);
      const std::vector<std::pair<at::Tensor, at::Tensor>> pairs = {{again.middle, first.middle},
                                                                    {again.inner, first.inner},
                                                                    {again.x, first.x},
                                                                    {again.qkv, first.qkv}};
      for (size_t p = 0; p < 4; ++p) {
        if (at::equal(pairs[p].first, pairs[p].second)) continue;
        if (++wrong[p] > 3) continue;
        const at::Tensor at = (pairs[p].first != pairs[p].second).nonzero().cpu();
        where += "\n launch " + std::to_string(i) + " part " + std::to_string(p) + ": " +
                 std::to_string(at.size(0)) + " from";
        for (int k = 0; k < std::min<int64_t>(at.size(0), 12); ++k) {
          where += " [" + std::to_string(at[k][0].item<int64_t>()) + "," +
                   std::to_string(at[k][1].item<int64_t>()) + "]";
        }
        where += " to [" + std::to_string(at[at.size(0) - 1][0].item<int64_t>()) + "," +
                 std::to_string(at[at.size(0) - 1][1].item<int64_t>()) + "]";
      }
    }
    EXPECT_EQ(wrong[0] + wrong[1] + wrong[2] + wrong[3], 0)
        << rows << ": " << wrong[0] << " " << wrong[1] << " " << wrong[2] << " " << wrong[3]
        << where;
  }
}

// The rows before and after the inputs and outputs are NaN.
TEST_P(MegakernelTest, ReadsAndWritesNothingOutside) {
  const Sizes sizes = kSizes[1];
  const Layer w(sizes);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto options = at::TensorOptions(device()).dtype(at::kBFloat16);
  const auto room = [&](int64_t width) { return at::full({5, width}, nan, options); };
  const std::vector<at::Tensor> rooms = {room(sizes.attention), room(sizes.hidden),
                                         room(sizes.hidden), room(sizes.mlp), room(sizes.qkv)};
  rooms[0].narrow(0, 1, 3).copy_(Drawn({3, sizes.attention}));
  rooms[1].narrow(0, 1, 3).copy_(Drawn({3, sizes.hidden}));
  const auto inside = [&](int i) { return rooms[i].narrow(0, 1, 3); };
  Launch(w, {inside(0), inside(1), inside(2), inside(3), inside(4)});
  for (int i = 1; i < 5; ++i) {
    EXPECT_TRUE(inside(i).isfinite().all().item<bool>()) << i;
    EXPECT_TRUE(rooms[i][0].isnan().all().item<bool>() && rooms[i][4].isnan().all().item<bool>());
  }
}

TEST_P(MegakernelTest, RefusesWhatItDoesNotTake) {
  const Layer w(kSizes[2]);
  const Rows many = RowsOf(w, Drawn({33, 512}), Drawn({33, 512}));
  EXPECT_THROW(Launch(w, many), c10::Error);
  EXPECT_FALSE(SupportsMegakernelGemm(500, 16, false));
  EXPECT_FALSE(SupportsMegakernelGemm(512, 24, false));
  EXPECT_FALSE(SupportsMegakernelGemm(512, 48, true));
  EXPECT_TRUE(SupportsMegakernelGemm(512, 48, false));
}

INSTANTIATE_TEST_SUITE_P(Gpus, MegakernelTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
