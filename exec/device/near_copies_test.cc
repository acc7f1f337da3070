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
  return {static_cast<const uint8_t*>(tensor.const_data_ptr()),
          static_cast<int64_t>(tensor.nbytes()), first * BytesOf(tensor.scalar_type()),
          tensor.scalar_type()};
}

// Whether a launch that turned `before` into `after` copied `from`.
std::optional<CopiedElements> Find(const at::Tensor& before, const at::Tensor& after,
                                   const at::Tensor& from, const CopyTolerance& tolerance = kNear) {
  return FindCopy(BytesOfTensor(before), static_cast<const uint8_t*>(after.const_data_ptr()),
                  BytesOfTensor(from), tolerance);
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

TEST(NearCopies, TheVeryValuesAreGivenBack) {
  const auto copied = Find(Poison(), Numbers().mul(1.005), Numbers());
  ASSERT_TRUE(copied.has_value());
  EXPECT_EQ(copied->to, 0);
  EXPECT_EQ(copied->from, 0);
  EXPECT_TRUE(copied->converted.equal(Numbers()));
  EXPECT_EQ(copied->is_copied, std::vector<uint8_t>(100, 1));
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
  EXPECT_EQ(beginning->is_copied.size(), 100u);
  const at::Tensor mostly_more = at::cat({Numbers(), at::full({150}, 3, at::kFloat)});
  EXPECT_FALSE(Find(Poison(250), mostly_more, Numbers()).has_value());
}

}  // namespace
}  // namespace tritonrl::device
