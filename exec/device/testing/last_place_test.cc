#include "exec/device/testing/last_place.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace tritonrl::device {
namespace {

TEST(LastPlaceTest, TheNextNumberAfterOneIsOneUnitAway) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16,
                                    at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kInt}) {
    const double unit = LastPlaceOf(type);
    const auto rounded = [&](double number) {
      return at::full({1}, number, at::kDouble).to(type).to(at::kDouble).item<double>();
    };
    EXPECT_EQ(rounded(1 + unit), 1 + unit) << type;
    EXPECT_EQ(rounded(1 + unit / 2), 1) << type;
  }
}

}  // namespace
}  // namespace tritonrl::device
