// Tests of norms, RoPE, SwiGLU, embeddings and GEMMs on every device.

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "model/layers/linear.h"
#include "model/layers/lm_head.h"
#include "model/layers/rms_norm.h"
#include "model/layers/rotary.h"
#include "model/layers/swiglu.h"
#include "model/testing/device_fixture.h"

namespace tritonrl {
namespace {

class DeviceLayersTest : public DeviceFixture {};

TEST_P(DeviceLayersTest, Linear) {
  const int64_t rows = 133, n = 72, k = 128;
  const at::Tensor x = Numbers({rows, k}, 1), w = Numbers({n, k}, 2), base = Numbers({rows, n}, 3);
  const at::Tensor d = Numbers({rows, 2 * n}, 4), sums = Numbers({n, k}, 5);
  for (const bool tuned : {false, true}) {
    const LayerContext context(2, false, {.autotune_gemm = tuned});
    Compare(
        [&](const Runner& r) {
          const at::Tensor x_there = r.Put(x), w_there = r.Put(w);
          at::Tensor wide = r.Put(d).clone(), out = r.Empty({rows, n});
          LinearForward(r.context, x_there, w_there, false, out);
          LinearForward(r.context, x_there, w_there, true, wide.narrow(1, n, n));
          const at::Tensor onto = LinearResidualAdd(r.context, r.Put(base), x_there, w_there);
          const at::Tensor d_out = r.Put(d).narrow(1, n, n);
          at::Tensor d_x = r.Empty({rows, k}), d_x_added = r.Put(x).clone();
          LinearBackwardInput(r.context, d_out, w_there, false, d_x);
          LinearBackwardInput(r.context, d_out, w_there, true, d_x_added);
          at::Tensor d_w = r.PutSums(sums).clone(), d_w_added = r.PutSums(sums).clone();
          d_w.fill_(std::nan(""));
          LinearBackwardWeight(r.context, d_out, x_there, false, d_w);
          LinearBackwardWeight(r.context, d_out, x_there, true, d_w_added);
          return Tensors{out, wide, onto, d_x, d_x_added, d_w, d_w_added};
        },
        {"output", "added to a slice", "onto", "d_x", "d_x added", "d_w", "d_w added"}, context);
  }
}

TEST_P(DeviceLayersTest, MatricesSideBySide) {
  const int64_t rows = 77, k = 64;
  const at::Tensor x = Numbers({rows, k}, 1), d = Numbers({rows, 56}, 2);
  const at::Tensor flat = Numbers({56 * k}, 3);
  Compare(
      [&](const Runner& r) {
        at::Tensor w = r.Put(flat), g = r.PutSums(flat).clone();
        FusedWeights weights, gradients;
        for (const auto& [row, size] : {std::pair<int64_t, int64_t>{0, 32}, {32, 16}, {48, 8}}) {
          weights.parts.push_back(w.narrow(0, row * k, size * k).view({size, k}));
          gradients.parts.push_back(g.narrow(0, row * k, size * k).view({size, k}));
        }
        weights.fused = Stacked(w, weights.parts);
        gradients.fused = Stacked(g, gradients.parts);
        EXPECT_EQ(FusedOrParts(r.context, weights).size(), r.device.is_cuda() ? 1 : 3);
        at::Tensor out = r.Empty({rows, 56});
        FusedLinearForward(r.context, r.Put(x), weights, out);
        const at::Tensor d_x =
            FusedLinearBackward(r.context, r.Put(d), r.Put(x), weights, true, gradients);
        return Tensors{out, d_x, g};
      },
      {"output", "d_x", "d_w"});
}

TEST_P(DeviceLayersTest, RmsNorm) {
  // The columns cover each number of packs that a thread may hold. Some cases have more rows than
  // the backward has blocks.
  for (const auto& [rows, cols] :
       {std::pair<int64_t, int64_t>{1300, 40}, {37, 1024}, {700, 4096}, {9, 5120}, {33, 8192}}) {
    const at::Tensor x = Numbers({rows, cols}, 1), w = Numbers({cols}, 2);
    const at::Tensor d_y = Numbers({rows, cols}, 3), before = Numbers({rows, cols}, 4);
    const at::Tensor sums = Numbers({cols}, 5);
    Compare(
        [&](const Runner& r) {
          at::Tensor rstd;
          const at::Tensor y = RmsNormForward(r.context, r.Put(x), r.Put(w), 1e-3, &rstd);
          const at::Tensor again = RecomputeRmsNorm(r.context, r.Put(x), r.Put(w), rstd);
          EXPECT_TRUE(SameBits(y.cpu(), again.cpu()));
          at::Tensor d_x = r.Put(before).clone(), d_w = r.PutSums(sums).clone();
          RmsNormBackward(r.context, r.Put(x), r.Put(w), rstd, r.Put(d_y), d_x, d_w);
          return Tensors{y, rstd, d_x, d_w};
        },
        {"output", "rstd", "d_x", "d_w"});
  }
}

TEST_P(DeviceLayersTest, HeadNormAndRotary) {
  ModelConfig config = SmallConfig();
  for (const auto& [rows, dim] : {std::pair<int64_t, int64_t>{1100, 64}, {130, 128}, {70, 256}}) {
    config.head_dim = dim;
    config.max_positions = 2048;
    const int64_t turned = config.query_size() + config.kv_size();
    const at::Tensor qkv = Numbers({rows, turned + config.kv_size()}, 1);
    const at::Tensor d_qkv = Numbers(qkv.sizes(), 2);
    const at::Tensor wq = Numbers({dim}, 3), wk = Numbers({dim}, 4), sums = Numbers({dim}, 5);
    const at::Tensor positions = at::arange(rows, at::kLong).flip({0}).contiguous();
    for (const bool normed : {true, false}) {
      Compare(
          [&](const Runner& r) {
            const at::Tensor q_weight = normed ? r.Put(wq) : at::Tensor();
            const at::Tensor k_weight = normed ? r.Put(wk) : at::Tensor();
            const RotaryTable table = MakeRotaryTable(config, r.device, r.type);
            at::Tensor rstd, d = r.Put(d_qkv).clone();
            at::Tensor d_wq = r.PutSums(sums).clone(), d_wk = r.PutSums(sums).clone();
            const at::Tensor qk =
                HeadNormRotaryForward(r.context, config, r.Put(qkv), q_weight, k_weight, table,
                                      r.PutIds(positions), &rstd);
            HeadNormRotaryBackward(r.context, config, r.Put(qkv), rstd, q_weight, k_weight, table,
                                   r.PutIds(positions), d, d_wq, d_wk);
            return Tensors{qk, d, d_wq, d_wk};
          },
          {"output", "d_qkv", "d_q_norm", "d_k_norm"});
    }
  }
}

TEST_P(DeviceLayersTest, Swiglu) {
  // One case has more rows than the grid. Halves of 12 columns run through ATen, as no kernel
  // supports them.
  for (const auto& [rows, size] :
       {std::pair<int64_t, int64_t>{131, 72}, {20, 12288}, {16500, 8}, {5, 12}}) {
    const at::Tensor x = Numbers({rows, 2 * size}, 1, 3.0), d_out = Numbers({rows, size}, 2);
    Compare(
        [&](const Runner& r) {
          at::Tensor again;
          const at::Tensor out = SwigluForward(r.context, r.Put(x));
          const at::Tensor d =
              SwigluBackward(r.context, r.Put(x), false, r.Put(d_out).clone(), &again);
          at::Tensor kept = r.Put(x).clone(), more;
          const at::Tensor in_place =
              SwigluBackward(r.context, kept, true, r.Put(d_out).clone(), &more);
          EXPECT_EQ(in_place.data_ptr(), kept.data_ptr());
          EXPECT_TRUE(SameBits(in_place.cpu(), d.cpu()));
          EXPECT_TRUE(SameBits(more.cpu(), again.cpu()));
          EXPECT_TRUE(SameBits(out.cpu(), again.cpu()));
          const at::Tensor alone =
              SwigluBackward(r.context, r.Put(x), false, r.Put(d_out).clone(), nullptr);
          EXPECT_TRUE(SameBits(alone.cpu(), d.cpu()));
          return Tensors{out, d, again};
        },
        {"output", "d_gate_up", "output again"});
  }
}

TEST_P(DeviceLayersTest, Embedding) {
  const at::Tensor table = Numbers({300, 1032}, 1), d_out = Numbers({500, 1032}, 2);
  const at::Tensor tokens = at::arange(500, at::kLong).square().remainder(257);
  const at::Tensor sums = Numbers({300, 1032}, 3);
  Compare(
      [&](const Runner& r) {
        at::Tensor d = r.PutSums(sums).clone();
        EmbeddingBackward(r.context, r.PutIds(tokens), r.Put(d_out), d);
        return Tensors{EmbeddingForward(r.context, r.Put(table), r.PutIds(tokens)), d};
      },
      {"output", "d_table"});
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceLayersTest, testing::ValuesIn(Settings()), SettingName);

}  // namespace
}  // namespace tritonrl
