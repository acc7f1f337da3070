#include "trainer/checkpoint/optimizer_state.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace tritonrl {
namespace {

TEST(CpuCopy, HoldsTheSourceInChunks) {
  CpuCopy copy(/*chunk_bytes=*/32);
  for (const int64_t n : {0, 1, 8, 9, 30}) {
    const at::Tensor source = at::arange(n, at::kFloat);
    copy.Take(source);
    EXPECT_EQ(copy.chunks().size(), (n + 7) / 8) << n;
    const at::Tensor wanted = source.clone();
    source.fill_(-1);
    const at::Tensor back = at::zeros({n}, at::kFloat);
    copy.CopyTo(back);
    EXPECT_TRUE(back.equal(wanted)) << n;
  }
}

TEST(CpuCopy, KeepsItsMemoryForTheNextOfTheSameKind) {
  CpuCopy copy(/*chunk_bytes=*/64);
  copy.Take(at::arange(40, at::kFloat));
  const void* first = copy.chunks()[0].const_data_ptr();
  copy.Take(at::arange(40, at::kFloat).add_(5));
  EXPECT_EQ(copy.chunks()[0].const_data_ptr(), first);
  EXPECT_EQ(copy.chunks()[2][7].item<float>(), 44);
  copy.Take(at::arange(40, at::kBFloat16));
  EXPECT_EQ(copy.chunks()[0].scalar_type(), at::kBFloat16);
  EXPECT_EQ(copy.chunks().size(), 2);
}

TEST(CpuCopy, RefusesWhatDoesNotFit) {
  CpuCopy copy;
  EXPECT_THROW(copy.Take(at::zeros({4, 4}, at::kFloat).t().narrow(0, 0, 2)), c10::Error);
  copy.Take(at::zeros({4}, at::kFloat));
  EXPECT_THROW(copy.CopyTo(at::zeros({5}, at::kFloat)), c10::Error);
  EXPECT_THROW(copy.CopyTo(at::zeros({4}, at::kDouble)), c10::Error);
}

}  // namespace
}  // namespace tritonrl
