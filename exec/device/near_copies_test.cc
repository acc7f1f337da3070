#include "exec/device/near_copies.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <limits>

#include "exec/device/geometry.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

constexpr CopyTolerance kNear = {.absolute = 1e-2, .relative = 1e-2, .converts = true};

ArgumentBytes BytesOfTensor(const at::Tensor& tensor, int64_t first = 0) {
  return {tensor.view(at::kByte), first * BytesOf(tensor.scalar_type()), tensor.scalar_type()};
}

// Whether a launch that turned `before` into `after` copied `from`.
std::optional<CopiedElements> Find(const at::Tensor& before, const at::Tensor& after,
                                   const at::Tensor& from, const CopyTolerance& tolerance = kNear) {
  return FindCopy(BytesOfTensor(before), after.view(at::kByte), BytesOfTensor(from), tolerance);
}

at::Tensor Numbers() { return at::arange(1, 101).to(at::kFloat); }
at::Tensor Poison(int64_t count = 100, at::ScalarType type = at::kFloat) {
  return at::full({count}, std::numeric_limits<float>::quiet_NaN(), type);
}

TEST(NearCopies, CopiesFactorsAndRoundings) {
  EXPECT_TRUE(Find(Poison(), Numbers(), Numbers()).has_value());
  EXPECT_TRUE(Find(Poison(), Numbers().mul(1.005), Numbers()).has_value());
  EXPECT_FALSE(Find(Poison(), Numbers().mul(1.005), Numbers(), {}).has_value());
  EXPECT_FALSE(Find(Poison(), Numbers().mul(1.02), Numbers()).has_value());
  at::Tensor one_other = Numbers();
  one_other[70] = 5;
  EXPECT_FALSE(Find(Poison(), one_other, Numbers()).has_value());
  EXPECT_FALSE(Find(Numbers(), Numbers(), Numbers()).has_value());  // nothing changed
}

TEST(NearCopies, TheVeryValuesAreGivenBackWithTheirTags) {
  for (const int64_t count : {int64_t{100}, int64_t{3'000'000}}) {  // one slice, and three
    const at::Tensor numbers = at::arange(1, count + 1).to(at::kFloat);
    const at::Tensor before = Poison(count, at::kHalf);
    at::Tensor after = numbers.mul(0.001).to(at::kHalf);
    const at::Tensor held = numbers.mul(0.001);
    before.narrow(0, count - 7, 7).copy_(after.narrow(0, count - 7, 7));  // not changed
    const auto copied = Find(before, after, held);
    ASSERT_TRUE(copied.has_value());
    EXPECT_EQ(copied->to, 0);
    EXPECT_EQ(copied->from, 0);
    EXPECT_EQ(copied->is_copied.sum().item<int64_t>(), count - 7);
    const at::Tensor from_tags = at::full({4 * count}, 2, at::kByte);
    const at::Tensor tags = at::full({2 * count}, 3, at::kByte);
    after.mul_(1.005);
    TakeCopied(*copied, BytesOfTensor(held), from_tags, at::kHalf, after.view(at::kByte), tags);
    EXPECT_TRUE(after.narrow(0, 0, count - 7).equal(held.to(at::kHalf).narrow(0, 0, count - 7)));
    EXPECT_FALSE(after[count - 7].equal(held[count - 7].to(at::kHalf)));
    EXPECT_EQ(tags.eq(2).sum().item<int64_t>(), 2 * (count - 7));
    EXPECT_EQ(tags.eq(3).sum().item<int64_t>(), 2 * 7);
  }
}

TEST(NearCopies, OneOtherElementInTheLastSlice) {
  const at::Tensor numbers = at::arange(1, 2'500'001).to(at::kFloat);
  at::Tensor after = numbers.clone();
  after[2'499'000] = 5;
  EXPECT_FALSE(Find(Poison(2'500'000), after, numbers).has_value());
  EXPECT_TRUE(Find(Poison(2'500'000), numbers, numbers).has_value());
}

TEST(NearCopies, OtherTypes) {
  const at::Tensor halves = Numbers().to(at::kHalf);
  EXPECT_TRUE(Find(Poison(100, at::kHalf), halves, Numbers()).has_value());
  CopyTolerance same_type = kNear;
  same_type.converts = false;
  EXPECT_FALSE(Find(Poison(100, at::kHalf), halves, Numbers(), same_type).has_value());
  // Integers are copies if they are equal.
  const at::Tensor integers = at::arange(1000, 1100).to(at::kInt);
  const at::Tensor zeros = at::full({100}, 0, at::kInt);
  EXPECT_TRUE(Find(zeros, integers, integers).has_value());
  EXPECT_FALSE(Find(zeros, integers.add(1), integers).has_value());
}

TEST(NearCopies, OtherPlaces) {
  const at::Tensor wide = at::cat({Poison(1), Numbers()});
  const auto farther = Find(Poison(101), wide, Numbers());
  ASSERT_TRUE(farther.has_value());
  EXPECT_EQ(farther->to, 4);
  EXPECT_EQ(farther->from, 0);
  // What lies behind the source's end is the kernel's own.
  const at::Tensor more = at::cat({Numbers(), at::full({50}, 3, at::kFloat)});
  const auto beginning = Find(Poison(150), more, Numbers());
  ASSERT_TRUE(beginning.has_value());
  EXPECT_EQ(beginning->is_copied.numel(), 100);
  const at::Tensor mostly_more = at::cat({Numbers(), at::full({150}, 3, at::kFloat)});
  EXPECT_FALSE(Find(Poison(250), mostly_more, Numbers()).has_value());
}

}  // namespace
}  // namespace tritonrl::device
