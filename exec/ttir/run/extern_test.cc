// Functions of CUDA's device library.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/substitute.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

// Of x alone if `with_y` is false.
std::string Call(const std::string& symbol, bool with_y = false) {
  return absl::Substitute(
      "    %r = tt.extern_elementwise $0 {libname = \"\", libpath = \"\", pure = true, symbol = "
      "\"__nv_$1\"} : ($2) -> $$R\n",
      with_y ? "%x, %y" : "%x", symbol, with_y ? "$T, $T" : "$T");
}

std::vector<float> OfFloats(const std::string& symbol, const std::vector<float>& x) {
  return RunBody<float>(Call(symbol), "f32", "f32", x, x);
}
std::vector<int32_t> ToIntegers(const std::string& symbol, const std::vector<float>& x) {
  return RunBody<int32_t>(Call(symbol), "f32", "i32", x, x);
}

TEST(ExternTest, FunctionsOfFloats) {
  const std::vector<float> x = {0.25f, 1.5f, 2.0f, 3.75f};
  const auto expect = [&](const std::string& symbol, double (*function)(double)) {
    const std::vector<float> result = OfFloats(symbol, x);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_FLOAT_EQ(result[i], static_cast<float>(function(x[i]))) << symbol << " of " << x[i];
    }
  };
  expect("tanhf", std::tanh);
  expect("fast_expf", std::exp);
  expect("lgammaf", std::lgamma);
  expect("tgammaf", std::tgamma);
  expect("normcdff", [](double a) { return 0.5 * std::erfc(-a / std::sqrt(2.0)); });
  expect("exp10f", [](double a) { return std::pow(10.0, a); });
  expect("rcbrtf", [](double a) { return 1 / std::cbrt(a); });
  EXPECT_EQ(OfFloats("sinpif", {0.5f, 1.5f, 1e8f, 0.0f})[1], -1);
  EXPECT_EQ(OfFloats("cospif", {1.0f, 2.0f, 1e8f, 0.0f}), (std::vector<float>{-1, 1, 1, 1}));
}

TEST(ExternTest, FunctionsOfTwoNumbers) {
  EXPECT_EQ(RunBody<float>(Call("hypotf", true), "f32", "f32", std::vector<float>{3, 5},
                           std::vector<float>{4, 12}),
            (std::vector<float>{5, 13}));
  EXPECT_EQ(RunBody<double>(Call("fdim", true), "f64", "f64", std::vector<double>{3, 5},
                            std::vector<double>{4, 2}),
            (std::vector<double>{0, 3}));
}

TEST(ExternTest, TestsGiveIntegers) {
  const std::vector<float> x = {NAN, INFINITY, -INFINITY, -2.5f};
  EXPECT_EQ(ToIntegers("isnanf", x), (std::vector<int32_t>{1, 0, 0, 0}));
  EXPECT_EQ(ToIntegers("isinff", x), (std::vector<int32_t>{0, 1, 1, 0}));
  EXPECT_EQ(ToIntegers("finitef", x), (std::vector<int32_t>{0, 0, 0, 1}));
  EXPECT_EQ(ToIntegers("signbitf", {1.0f, -0.0f, -INFINITY, -2.5f}),
            (std::vector<int32_t>{0, 1, 1, 1}));
}

TEST(ExternTest, ConversionsRoundAsTheirNamesSay) {
  const std::vector<float> x = {2.5f, -2.5f, 1e20f, NAN};
  constexpr int32_t kMost = INT32_MAX;
  EXPECT_EQ(ToIntegers("float2int_rn", x), (std::vector<int32_t>{2, -2, kMost, 0}));
  EXPECT_EQ(ToIntegers("float2int_rz", x), (std::vector<int32_t>{2, -2, kMost, 0}));
  EXPECT_EQ(ToIntegers("float2int_ru", x), (std::vector<int32_t>{3, -2, kMost, 0}));
  EXPECT_EQ(ToIntegers("float2int_rd", x), (std::vector<int32_t>{2, -3, kMost, 0}));
  EXPECT_EQ(ToIntegers("float2uint_rn", x), (std::vector<int32_t>{2, 0, -1, 0}));
  const std::vector<int32_t> n = {-1, 16777217};
  EXPECT_EQ(RunBody<float>(Call("int2float_rn"), "i32", "f32", n, n),
            (std::vector<float>{-1, 16777216}));
  EXPECT_EQ(RunBody<double>(Call("uint2double_rn"), "i32", "f64", n, n),
            (std::vector<double>{4294967295.0, 16777217}));
}

TEST(ExternTest, Bits) {
  const std::vector<int32_t> x = {0, 1, 40, INT32_MIN};
  EXPECT_EQ(RunBody<int32_t>(Call("ffs"), "i32", "i32", x, x), (std::vector<int32_t>{0, 1, 4, 32}));
  EXPECT_EQ(RunBody<int32_t>(Call("clz"), "i32", "i32", x, x),
            (std::vector<int32_t>{32, 31, 26, 0}));
  const std::vector<int64_t> wide = {0, 1, int64_t{1} << 40, -1};
  EXPECT_EQ(RunBody<int32_t>(Call("ffsll"), "i64", "i32", wide, wide),
            (std::vector<int32_t>{0, 1, 41, 1}));
  EXPECT_EQ(RunBody<int32_t>(Call("popcll"), "i64", "i32", wide, wide),
            (std::vector<int32_t>{0, 1, 1, 64}));
}

TEST(ExternTest, AnUnknownFunctionIsNamed) {
  const absl::Status status = CompileError(
      KernelText("%x: f32",
                 "    %r = tt.extern_elementwise %x {libname = \"\", libpath = \"\", pure = true, "
                 "symbol = \"__nv_j0f\"} : (f32) -> f32\n"));
  EXPECT_TRUE(absl::StrContains(status.message(), "function __nv_j0f")) << status;
}

}  // namespace
}  // namespace tritonrl::ttir
