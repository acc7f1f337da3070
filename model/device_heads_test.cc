// Tests of attention and the LM head on every device.

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <c10/core/DeviceGuard.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/cuda/attention/packed_lengths.h"
#include "model/cuda/fused/kernels.h"
#include "model/layers/attention.h"
#include "model/layers/lm_head.h"
#include "model/testing/device_fixture.h"

namespace tritonrl {
namespace {

constexpr char kGpuKernel[] = "tests a kernel for bf16 on GPUs";

class DeviceHeadsTest : public DeviceFixture {};

// ATen rounds logits to bf16; the device's own kernels keep them in fp32.
TEST_P(DeviceHeadsTest, LmHeadInChunks) {
  for (const int64_t vocab : {1048, 1041}) {  // 1041 runs through ATen
    const int64_t rows = 150, cols = 64;
    const at::Tensor hidden = Numbers({rows, cols}, 1), w = Numbers({vocab, cols}, 2, 0.3);
    const at::Tensor targets = at::arange(rows, at::kLong).square().remainder(vocab);
    const at::Tensor d_log_probs = RandomTensor({rows}, 3).to(at::kFloat).to(at::kDouble);
    const bool aten = std::string(GetParam().device) == "cpu" || vocab % 8 != 0;
    const double tolerance = aten ? 0.06 : kHalfTolerance;
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
            const HeadOutput learnt = LmHeadForwardBackward(
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
}

PackedBatch BatchOn(at::Device device, const std::vector<int64_t>& lengths) {
  return PackSequences(RandomTokens(SmallConfig(), lengths, 1), device);
}

// Runs attention over sequences of these lengths; returns the output and the gradients of queries,
// keys and values.
Tensors Attention(const Runner& r, const ModelConfig& config, const std::vector<int64_t>& lengths,
                  const at::Tensor& qk, const at::Tensor& qkv, const at::Tensor& d_out) {
  const SequenceLayout layout = MakeSequenceLayout(BatchOn(r.device, lengths));
  at::Tensor lse, d = r.Empty(qkv.sizes());
  const at::Tensor out = AttentionForward(r.context, config, layout, r.Put(qk), r.Put(qkv), &lse);
  AttentionBackward(r.context, config, layout, r.Put(qk), r.Put(qkv), out, lse, r.Put(d_out), d);
  const int64_t q = config.query_size(), k = config.kv_size();
  return {out, d.narrow(1, 0, q), d.narrow(1, q, k), d.narrow(1, q + k, k)};
}

TEST_P(DeviceHeadsTest, AttentionOfPackedSequences) {
  const std::vector<const char*> names = {"output", "d_q", "d_k", "d_v"};
  const LayerContext fixed(2);
  // `free`: sequences of at least 250 tokens can get calls of their own. `buckets`: all sequences
  // share calls.
  const LayerContext free(2, false,
                          {.attention = {.deterministic = false, .dense_min_length = 250}});
  const LayerContext buckets(2, false,
                             {.attention = {.deterministic = false, .dense_min_length = 10000}});
  // One call per sequence, as on GPUs of compute capability 8 and 12.
  const LayerContext single(2, false,
                            {.attention = {.deterministic = false, .per_sequence = true}});
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
      // Without a fixed order of sums, only the distance from the reference is checked.
      const Tensors expected = compute({reference_, at::kCPU, at::kDouble, at::kDouble});
      const at::Device device(GetParam().device);
      // The first batch with a new length uses shared calls; later ones give it a call of its own.
      compute({free, device, GetParam().type, at::kFloat});
      const Tensors alone = compute({free, device, GetParam().type, at::kFloat});
      const Tensors packed = compute({buckets, device, GetParam().type, at::kFloat});
      const Tensors copied = compute({single, device, GetParam().type, at::kFloat});
      for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_LT(Difference(packed[i], expected[i]),
                  GetParam().type == at::kFloat ? kFloatTolerance : kHalfTolerance)
            << names[i] << " of heads of " << dim << ", " << lengths.size() << " sequences, packed";
        EXPECT_LT(Difference(copied[i], expected[i]),
                  GetParam().type == at::kFloat ? kFloatTolerance : kHalfTolerance)
            << names[i] << " of heads of " << dim << ", " << lengths.size() << " sequences, copied";
        EXPECT_LT(Difference(alone[i], expected[i]),
                  GetParam().type == at::kFloat ? kFloatTolerance : kHalfTolerance)
            << names[i] << " of heads of " << dim << ", " << lengths.size() << " sequences";
      }
    }
  }
}

// LaunchCopyRows zeroes the rows after the present ones, whatever they held, and touches nothing
// else.
TEST_P(DeviceHeadsTest, CopiedRowsEndInZeros) {
  const at::Device device(GetParam().device);
  if (!device.is_cuda() || GetParam().type != at::kBFloat16) GTEST_SKIP() << kGpuKernel;
  const c10::OptionalDeviceGuard guard(device);
  const int64_t rows = 70;
  const at::Tensor from = Numbers({rows, 24}, 1).to(device, at::kBFloat16);
  for (const int64_t present : {int64_t{0}, int64_t{33}, rows}) {
    const at::Tensor to = at::full({rows + 1, 48}, std::nan(""), from.options());
    RowCopies copies;
    for (const int64_t column : {0, 24}) {
      copies.Add({.from = from.narrow(1, 8, 16).const_data_ptr(),
                  .to = to.narrow(1, column, 16).data_ptr(),
                  .from_stride = 48,
                  .to_stride = 96,
                  .row = 32});
    }
    LaunchCopyRows(copies, present, rows, nullptr);
    at::Tensor expected = at::full({rows + 1, 48}, std::nan(""), from.options());
    for (const int64_t column : {0, 24}) {
      const at::Tensor part = expected.narrow(0, 0, rows).narrow(1, column, 16);
      part.zero_();
      part.narrow(0, 0, present).copy_(from.narrow(0, 0, present).narrow(1, 8, 16));
    }
    EXPECT_TRUE(SameBits(to.cpu(), expected.cpu())) << present;
  }
}

// The sequences are so long that a backward in a fixed order needs several calls, each for a share
// of the heads.
TEST_P(DeviceHeadsTest, CallsForSharesOfTheHeads) {
  const at::Device device(GetParam().device);
  if (!device.is_cuda() || GetParam().type != at::kBFloat16) GTEST_SKIP() << kGpuKernel;
  ModelConfig config = SmallConfig();
  config.num_heads = 32;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  const LayerContext fixed(2), free(2, false, {.attention = {.deterministic = false}});
  for (const int64_t length : {8192, 6000}) {  // the first runs in place, the second is copied
    ASSERT_GT(DeterministicBackwardCalls(32, 8, PaddedLength(length)), 1);
    const at::Tensor qk = Numbers({length, 40 * 128}, 1), qkv = Numbers({length, 48 * 128}, 2);
    const at::Tensor d_out = Numbers({length, 32 * 128}, 3);
    const auto compute = [&](const LayerContext& context) {
      return Attention({context, device, GetParam().type, at::kFloat}, config, {length}, qk, qkv,
                       d_out);
    };
    const Tensors ordered = compute(fixed), expected = compute(free);
    for (size_t i = 0; i < ordered.size(); ++i) {
      EXPECT_LT(Difference(ordered[i], expected[i].to(at::kDouble).cpu()), kHalfTolerance)
          << i << " of " << length;
    }
  }
}

// With a fixed order of sums, the rest of the batch changes no bit of a sequence's results.
TEST_P(DeviceHeadsTest, PackingChangesNoBitOfAttention) {
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

INSTANTIATE_TEST_SUITE_P(Devices, DeviceHeadsTest, testing::ValuesIn(Settings()), SettingName);

}  // namespace
}  // namespace tritonrl
