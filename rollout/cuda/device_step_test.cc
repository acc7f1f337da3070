// The kernels of a generation step between GEMMs and attention.

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

#include "model/cuda/fused/kernels.h"
#include "rollout/cuda/step_kernels.h"
#include "rollout/cuda/testing/device_fixture.h"

namespace tritonrl {
namespace {

class StepKernelsTest : public DeviceTest {};

// QK-norm and RoPE of the same rows by the learner's kernel.
at::Tensor NormedAndTurned(const QkvToCache& at, const at::Tensor& qkv,
                           const at::Tensor& positions) {
  const int64_t heads = at.shape.query_heads + at.shape.key_heads;
  at::Tensor out = at::empty({at.rows, heads, at.shape.head_dim}, qkv.options());
  at::Tensor rstd = at::empty({at.rows, heads}, qkv.options().dtype(at::kFloat));
  const at::Tensor wide = positions.to(at::kLong);
  const CudaHeads learner = {.rows = at.rows,
                             .query_heads = at.shape.query_heads,
                             .key_heads = at.shape.key_heads,
                             .dim = at.shape.head_dim,
                             .stride = qkv.stride(0),
                             .type = CudaType::kBFloat16,
                             .q_weight = at.q_weight,
                             .k_weight = at.k_weight,
                             .cos = at.cos,
                             .sin = at.sin,
                             .positions = wide.const_data_ptr<int64_t>(),
                             .stream = at.stream};
  LaunchHeadNormRotary(learner, at.qkv, at.eps, out.data_ptr(), rstd.data_ptr<float>());
  return out;
}

TEST_P(StepKernelsTest, QkvGoesToTheCacheWithTheLearnersBits) {
  for (const CacheHeads& shape :
       {CacheHeads{32, 8, 128}, CacheHeads{5, 1, 128}, CacheHeads{16, 8, 64}}) {
    for (const bool normed : {true, false}) {
      SCOPED_TRACE(testing::Message() << shape.query_heads << " heads of " << shape.head_dim
                                      << (normed ? ", normed" : ""));
      const int64_t queries = shape.query_heads, keys = shape.key_heads, dim = shape.head_dim;
      const std::vector<int32_t> slots = {37, kNoPageSlot, 0, 95, 16, 17};
      const int64_t rows = static_cast<int64_t>(slots.size()), pool_rows = 96;
      const at::Tensor qkv = Numbers({rows, (queries + 2 * keys) * dim}, 1);
      const at::Tensor q_weight = Numbers({dim}, 2), k_weight = Numbers({dim}, 3);
      const at::Tensor angles = RandomTensor({50, dim / 2}, 4, 3.0);
      const at::Tensor cos = angles.cos().to(at::kFloat).to(device());
      const at::Tensor sin = angles.sin().to(at::kFloat).to(device());
      const at::Tensor positions = Ints({5, 0, 49, 7, 8, 31}), page_slots = Ints(slots);
      const at::Tensor before = Numbers({2, pool_rows, keys, dim}, 5);
      const at::Tensor pools = before.clone();
      at::Tensor out = Empty({rows, queries, dim}, at::kBFloat16);
      const QkvToCache at = {.shape = shape,
                             .rows = rows,
                             .qkv = qkv.const_data_ptr(),
                             .q_weight = normed ? q_weight.const_data_ptr() : nullptr,
                             .k_weight = normed ? k_weight.const_data_ptr() : nullptr,
                             .eps = 1e-6f,
                             .cos = cos.const_data_ptr<float>(),
                             .sin = sin.const_data_ptr<float>(),
                             .positions = positions.const_data_ptr<int32_t>(),
                             .page_slots = page_slots.const_data_ptr<int32_t>(),
                             .queries = out.data_ptr(),
                             .keys = pools[0].data_ptr(),
                             .values = pools[1].data_ptr(),
                             .stream = stream()};
      LaunchQkvToCache(at);
      const at::Tensor learner = NormedAndTurned(at, qkv, positions);
      EXPECT_TRUE(at::equal(out, learner.slice(1, 0, queries)))
          << MaxDifference(out.cpu(), learner.slice(1, 0, queries).cpu());
      at::Tensor expected = before.clone();
      for (int64_t row = 0; row < rows; ++row) {
        if (slots[row] < 0) continue;
        expected[0][slots[row]].copy_(learner[row].slice(0, queries));
        expected[1][slots[row]].copy_(qkv[row].slice(0, (queries + keys) * dim).view({keys, dim}));
      }
      EXPECT_TRUE(at::equal(pools[0], expected[0]))
          << "keys: " << MaxDifference(pools[0].cpu(), expected[0].cpu());
      EXPECT_TRUE(at::equal(pools[1], expected[1]))
          << "values: " << MaxDifference(pools[1].cpu(), expected[1].cpu());
    }
  }
}

TEST_P(StepKernelsTest, GathersRowsByIdAndThroughSlots) {
  const int64_t cols = 4096;
  const at::Tensor table = Numbers({60, cols}, 1);
  const at::Tensor ids = Ints({59, 0, -1, 7}), through = Ints({3, -1, 0, 2, 1, 1});
  const at::Tensor none = at::zeros({cols}, table.options());
  at::Tensor direct = Empty({4, cols}, at::kBFloat16), slots = Empty({6, cols}, at::kBFloat16);
  RowGather at = {.rows = 4,
                  .row_bytes = 2 * cols,
                  .from = table.const_data_ptr(),
                  .ids = ids.const_data_ptr<int32_t>(),
                  .out = direct.data_ptr(),
                  .stream = stream()};
  LaunchGatherRows(at);
  at.rows = 6;
  at.through = through.const_data_ptr<int32_t>();
  at.out = slots.data_ptr();
  LaunchGatherRows(at);
  const std::vector<at::Tensor> of_ids = {table[59], table[0], none, table[7]};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(at::equal(direct[i], of_ids[i])) << i;
  const std::vector<at::Tensor> of_slots = {table[7], none, table[59], none, table[0], table[0]};
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(at::equal(slots[i], of_slots[i])) << i;
}

TEST_P(StepKernelsTest, CopiesPagesOfAllPools) {
  const CacheHeads shape = {32, 8, 128};
  const at::Tensor pools = Numbers({3, 10, shape.PageElements()}, 1), before = pools.clone();
  const at::Tensor pointers =
      Bytes(std::vector<void*>{pools[0].data_ptr(), pools[1].data_ptr(), pools[2].data_ptr()});
  const at::Tensor pairs = Ints({9, 0, -1, 3, 4, 5, 2, -1});
  LaunchCopyPages({.pools_count = 3,
                   .pools = static_cast<void* const*>(pointers.const_data_ptr()),
                   .page_bytes = shape.PageBytes(),
                   .pairs_count = 4,
                   .pairs = pairs.const_data_ptr<int32_t>(),
                   .stream = stream()});
  for (int pool = 0; pool < 3; ++pool) {
    for (int page = 0; page < 10; ++page) {
      const int from = page == 0 ? 9 : page == 5 ? 4 : page;
      EXPECT_TRUE(at::equal(pools[pool][page], before[pool][from])) << pool << ", " << page;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, StepKernelsTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
