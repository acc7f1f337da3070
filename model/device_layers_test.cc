// Each layer on every device of this machine, in fp32 and bf16, by the kernels that the device has,
// against the same layer through ATen in fp64 on the CPU, from the same numbers; and the same bits
// when run again. (layers_test.cc holds that fp64 path against autograd.)

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
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

struct Setting {
  const char* device;
  at::ScalarType type;
};

std::vector<Setting> Settings() {
  std::vector<Setting> settings = {{"cpu", at::kFloat}, {"cpu", at::kBFloat16}};
  if (at::globalContext().hasCUDA()) {
    settings.push_back({"cuda", at::kFloat});
    settings.push_back({"cuda", at::kBFloat16});
  }
  return settings;
}

// Runs a layer's computation in one type on one device. Its inputs are fp64 numbers that the tested
// type holds exactly.
struct Runner {
  const LayerContext& context;
  at::Device device;
  at::ScalarType type;
  at::ScalarType sums;  // type of what is fp32 whatever the type of the model

  at::Tensor Put(const at::Tensor& x) const { return x.to(type).to(device); }
  at::Tensor PutSums(const at::Tensor& x) const { return x.to(sums).to(device); }
  at::Tensor PutIds(const at::Tensor& x) const { return x.to(device); }
  at::Tensor Empty(at::IntArrayRef shape) const {
    at::Tensor x = at::empty(shape, at::TensorOptions(device).dtype(type));
    return x.fill_(std::nan(""));  // every element must be written
  }
};

// Relative to the largest value; absolute where all are zero (queries and keys of single tokens).
double Difference(const at::Tensor& actual, const at::Tensor& expected) {
  const bool zero = expected.abs().max().item<double>() < 1e-12;
  return zero ? MaxDifference(actual.cpu(), expected) : RelativeDifference(actual.cpu(), expected);
}

class DeviceLayersTest : public testing::TestWithParam<Setting> {
 protected:
  using Computation = std::function<Tensors(const Runner&)>;

  static constexpr double kFloatTolerance = 5e-5;
  static constexpr double kHalfTolerance = 0.02;  // 5 roundings to bf16 at the largest value

  // Normal numbers as the tested type holds them, in fp64.
  static at::Tensor Numbers(at::IntArrayRef shape, uint64_t seed, double scale = 1.0) {
    return RandomTensor(shape, seed, scale).to(GetParam().type).to(at::kDouble);
  }

  void Compare(const Computation& compute, const std::vector<const char*>& names,
               const LayerContext& context, double half_tolerance = kHalfTolerance) const {
    const at::Device device(GetParam().device);
    const Runner tested = {context, device, GetParam().type, at::kFloat};
    const Runner reference = {reference_, at::kCPU, at::kDouble, at::kDouble};
    const Tensors expected = compute(reference), first = compute(tested), second = compute(tested);
    ASSERT_EQ(expected.size(), names.size());
    const double tolerance = GetParam().type == at::kFloat ? kFloatTolerance : half_tolerance;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(first[i].sizes(), expected[i].sizes()) << names[i];
      EXPECT_LT(Difference(first[i], expected[i]), tolerance) << names[i];
      EXPECT_TRUE(SameBits(first[i].cpu(), second[i].cpu())) << names[i] << " again";
    }
  }
  void Compare(const Computation& compute, const std::vector<const char*>& names,
               double half_tolerance = kHalfTolerance) const {
    Compare(compute, names, context_, half_tolerance);
  }

  const LayerContext context_{2};
  const LayerContext reference_{2, true};
};

TEST_P(DeviceLayersTest, Linear) {
  const int64_t rows = 133, n = 72, k = 128;
  const at::Tensor x = Numbers({rows, k}, 1), w = Numbers({n, k}, 2), base = Numbers({rows, n}, 3);
  const at::Tensor d = Numbers({rows, 2 * n}, 4), sums = Numbers({n, k}, 5);
  for (const bool tuned : {false, true}) {
    const LayerContext context(2, false, {.tuned_products = tuned});
    Compare(
        [&](const Runner& r) {
          const at::Tensor x_there = r.Put(x), w_there = r.Put(w);
          at::Tensor wide = r.Put(d).clone(), out = r.Empty({rows, n});
          LinearForward(r.context, x_there, w_there, false, out);
          LinearForward(r.context, x_there, w_there, true, wide.narrow(1, n, n));
          const at::Tensor onto = LinearOnto(r.context, r.Put(base), x_there, w_there);
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
        Sides weights, gradients;
        for (const auto& [row, size] : {std::pair<int64_t, int64_t>{0, 32}, {32, 16}, {48, 8}}) {
          weights.parts.push_back(w.narrow(0, row * k, size * k).view({size, k}));
          gradients.parts.push_back(g.narrow(0, row * k, size * k).view({size, k}));
        }
        weights.all = Stacked(w, weights.parts);
        gradients.all = Stacked(g, gradients.parts);
        const bool together = Together(r.context, weights);
        EXPECT_EQ(together, r.device.is_cuda());
        at::Tensor out = r.Empty({rows, 56});
        SidesForward(r.context, r.Put(x), weights, together, out);
        const at::Tensor d_x =
            SidesBackward(r.context, r.Put(d), r.Put(x), weights, together, true, gradients);
        return Tensors{out, d_x, g};
      },
      {"output", "d_x", "d_w"});
}

TEST_P(DeviceLayersTest, RmsNorm) {
  // Columns for each number of packs that a thread may hold; more rows than the backward's blocks.
  for (const auto& [rows, cols] :
       {std::pair<int64_t, int64_t>{1300, 40}, {37, 1024}, {700, 4096}, {9, 5120}, {33, 8192}}) {
    const at::Tensor x = Numbers({rows, cols}, 1), w = Numbers({cols}, 2);
    const at::Tensor d_y = Numbers({rows, cols}, 3), before = Numbers({rows, cols}, 4);
    const at::Tensor sums = Numbers({cols}, 5);
    Compare(
        [&](const Runner& r) {
          at::Tensor rstd;
          const at::Tensor y = RmsNormForward(r.context, r.Put(x), r.Put(w), 1e-3, &rstd);
          const at::Tensor again = RmsNormAgain(r.context, r.Put(x), r.Put(w), rstd);
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
  // The last has more rows than the grid.
  for (const auto& [rows, size] : {std::pair<int64_t, int64_t>{131, 72}, {20, 12288}, {16500, 8}}) {
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

// ATen on the CPU rounds logits to bf16, where the device's own kernels keep them in fp32.
TEST_P(DeviceLayersTest, LmHeadInChunks) {
  const int64_t rows = 150, vocab = 1048, cols = 64;
  const at::Tensor hidden = Numbers({rows, cols}, 1), w = Numbers({vocab, cols}, 2, 0.3);
  const at::Tensor targets = at::arange(rows, at::kLong).square().remainder(vocab);
  const at::Tensor d_log_probs = RandomTensor({rows}, 3).to(at::kFloat).to(at::kDouble);
  const double tolerance = std::string(GetParam().device) == "cpu" ? 0.06 : kHalfTolerance;
  for (const int64_t chunk : {0, 64}) {
    const HeadSettings settings = {0.6, chunk};
    const at::Tensor sums = Numbers({vocab, cols}, 4);
    Compare(
        [&](const Runner& r) {
          const at::Tensor h = r.Put(hidden), weight = r.Put(w), ids = r.PutIds(targets);
          const at::Tensor d = r.PutSums(d_log_probs);
          const HeadOutput out = LmHeadForward(r.context, h, weight, ids, settings);
          at::Tensor d_w = r.PutSums(sums).clone(), learnt_d_w = r.PutSums(sums).clone();
          const at::Tensor d_hidden =
              LmHeadBackward(r.context, h, weight, ids, settings, out.lse, d, d_w);
          at::Tensor learnt_d = r.Empty({rows, cols});
          learnt_d_w.fill_(std::nan(""));
          const HeadOutput learnt = LmHeadLearn(
              r.context, h, weight, ids, settings,
              [&](int64_t begin, int64_t end, const at::Tensor&, const at::Tensor&) {
                return d.slice(0, begin, end);
              },
              false, learnt_d, learnt_d_w);
          EXPECT_TRUE(SameBits(learnt.log_probs.cpu(), out.log_probs.cpu()));
          EXPECT_TRUE(SameBits(learnt_d.cpu(), d_hidden.cpu()));
          return Tensors{out.log_probs, out.entropy, out.lse, d_hidden, d_w, learnt_d_w};
        },
        {"log_probs", "entropy", "lse", "d_hidden", "d_w", "d_w written"}, tolerance);
  }
}

PackedBatch BatchOn(at::Device device, const std::vector<int64_t>& lengths) {
  return PackSequences(RandomTokens(SmallConfig(), lengths, 1), device);
}

// Attention over sequences of these lengths: output, then gradients of queries, keys and values.
Tensors Attention(const Runner& r, const ModelConfig& config, const std::vector<int64_t>& lengths,
                  const at::Tensor& qk, const at::Tensor& qkv, const at::Tensor& d_out) {
  const SequenceLayout layout = MakeSequenceLayout(BatchOn(r.device, lengths));
  at::Tensor lse, d = r.Empty(qkv.sizes());
  const at::Tensor out = AttentionForward(r.context, config, layout, r.Put(qk), r.Put(qkv), &lse);
  AttentionBackward(r.context, config, layout, r.Put(qk), r.Put(qkv), out, lse, r.Put(d_out), d);
  const int64_t q = config.query_size(), k = config.kv_size();
  return {out, d.narrow(1, 0, q), d.narrow(1, q, k), d.narrow(1, q + k, k)};
}

TEST_P(DeviceLayersTest, AttentionOfPackedSequences) {
  const std::vector<const char*> names = {"output", "d_q", "d_k", "d_v"};
  const LayerContext fixed(2);
  // Long sequences by themselves, or all as buckets.
  const LayerContext free(2, false, {.attention = {.deterministic = false, .dense_from = 250}});
  const LayerContext buckets(2, false,
                             {.attention = {.deterministic = false, .dense_from = 10000}});
  for (const int64_t dim : {64, 128}) {
    ModelConfig config = SmallConfig();
    config.head_dim = dim;
    const int64_t values = config.query_size() + 2 * config.kv_size();
    for (const std::vector<int64_t>& lengths :
         {std::vector<int64_t>{70, 1, 0, 133, 600, 32, 128, 1, 257}, {300}, {1}, {256, 256}}) {
      const int64_t rows = BatchOn(at::kCPU, lengths).num_tokens();
      const at::Tensor qk = Numbers({rows, values - config.kv_size()}, 1);
      const at::Tensor qkv = Numbers({rows, values}, 2);
      const at::Tensor d_out = Numbers({rows, config.query_size()}, 3);
      const auto compute = [&](const Runner& r) {
        return Attention(r, config, lengths, qk, qkv, d_out);
      };
      Compare(compute, names, fixed);
      // Without a fixed order only the result is compared.
      const Tensors expected = compute({reference_, at::kCPU, at::kDouble, at::kDouble});
      const at::Device device(GetParam().device);
      const Tensors alone = compute({free, device, GetParam().type, at::kFloat});
      const Tensors packed = compute({buckets, device, GetParam().type, at::kFloat});
      for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_LT(Difference(packed[i], expected[i]),
                  GetParam().type == at::kFloat ? kFloatTolerance : kHalfTolerance)
            << names[i] << " of heads of " << dim << ", " << lengths.size() << " sequences, packed";
        EXPECT_LT(Difference(alone[i], expected[i]),
                  GetParam().type == at::kFloat ? kFloatTolerance : kHalfTolerance)
            << names[i] << " of heads of " << dim << ", " << lengths.size() << " sequences";
      }
    }
  }
}

// With sums in a fixed order, what else is in the batch changes no bit of a sequence.
TEST_P(DeviceLayersTest, PackingChangesNoBitOfAttention) {
  ModelConfig config = SmallConfig();
  config.head_dim = 64;
  const LayerContext fixed(2);
  const Runner r = {fixed, at::Device(GetParam().device), GetParam().type, at::kFloat};
  const std::vector<int64_t> lengths = {70, 300, 1, 133};
  const int64_t rows = 504, values = config.query_size() + 2 * config.kv_size();
  const at::Tensor qk = Numbers({rows, values - config.kv_size()}, 1);
  const at::Tensor qkv = Numbers({rows, values}, 2);
  const at::Tensor d_out = Numbers({rows, config.query_size()}, 3);
  const Tensors all = Attention(r, config, lengths, qk, qkv, d_out);
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, length); };
    const Tensors alone = Attention(r, config, {length}, part(qk), part(qkv), part(d_out));
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(SameBits(part(all[i]).cpu().contiguous(), alone[i].cpu().contiguous()))
          << i << " of " << length;
    }
    begin += length;
  }
}

std::string SettingName(const testing::TestParamInfo<Setting>& info) {
  return std::string(info.param.device) + (info.param.type == at::kFloat ? "_fp32" : "_bf16");
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceLayersTest, testing::ValuesIn(Settings()), SettingName);

}  // namespace
}  // namespace tritonrl
