// Tests of norms, RoPE, attention, SwiGLU and embeddings; see layers_fixture.h.

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "model/layers/attention.h"
#include "model/layers/lm_head.h"
#include "model/layers/rms_norm.h"
#include "model/layers/rotary.h"
#include "model/layers/swiglu.h"
#include "model/testing/layers_fixture.h"

namespace tritonrl {
namespace {

class LayersTest : public LayersFixture {};

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
  EXPECT_TRUE(SameBits(RecomputeRmsNorm(context_, Typed(x), Typed(w), rstd), y));
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

// The reference: one masked score matrix for all sequences, with repeated key/value heads.
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
  batch.offsets = {0, 50, 50, 51, 130, kRows};  // one sequence is empty
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

INSTANTIATE_TEST_SUITE_P(Paths, LayersTest,
                         testing::Values(Path::kKernels, Path::kAtenFloat, Path::kAtenDouble),
                         PathName);

}  // namespace
}  // namespace tritonrl
