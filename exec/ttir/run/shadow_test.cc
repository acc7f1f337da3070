// Shadows of the bytes that a launch stores.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr uint8_t kTag = 9;

KernelArgument WithShadow(KernelArgument argument, std::vector<uint8_t>& shadow) {
  argument.shadow = shadow.data();
  return argument;
}

int64_t Tagged(const std::vector<uint8_t>& shadow) {
  return std::count(shadow.begin(), shadow.end(), kTag);
}

absl::Status LaunchTagged(const Kernel& kernel, const std::vector<KernelArgument>& arguments,
                          std::vector<ReachableMemory> reachable = {}) {
  LaunchOptions options;
  options.threads = 2;
  options.shadow_tag = kTag;
  options.reachable = std::move(reachable);
  return kernel.Launch({1, 1, 1}, arguments, options);
}

// Stores %v to 64 elements of the type with the first 40 of them active, `step` elements apart.
std::string MaskedStore(const std::string& type, int step) {
  const std::string tensor = "tensor<64x" + type + ">";
  const std::string pointers = "tensor<64x!tt.ptr<" + type + ">>";
  return "    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
         "    %step = arith.constant dense<" +
         std::to_string(step) +
         "> : tensor<64xi32>\n"
         "    %forty = arith.constant dense<40> : tensor<64xi32>\n"
         "    %mask = arith.cmpi slt, %i, %forty : tensor<64xi32>\n"
         "    %by = arith.muli %i, %step : tensor<64xi32>\n"
         "    %v = arith.constant dense<0.000000e+00> : " +
         tensor +
         "\n"
         "    %s = tt.splat %x_ptr : !tt.ptr<" +
         type + "> -> " + pointers + "\n    %at = tt.addptr %s, %by : " + pointers +
         ", tensor<64xi32>\n    tt.store %at, %v, %mask : " + pointers + "\n";
}

TEST(ShadowTest, StoresOfAnyValueAreSeen) {
  for (const int step : {1, 2}) {
    for (const std::string type : {"f32", "f16"}) {
      const size_t bytes = type == "f32" ? 4 : 2;
      const auto kernel =
          CompileText(KernelText("%x_ptr: !tt.ptr<" + type + ">", MaskedStore(type, step)));
      ASSERT_NE(kernel, nullptr);
      std::vector<uint8_t> x(128 * bytes);
      std::vector<uint8_t> shadow(x.size(), 3);
      ASSERT_TRUE(LaunchTagged(*kernel, {WithShadow(ArgumentOf(x), shadow)}).ok());
      for (size_t i = 0; i < shadow.size(); ++i) {
        const size_t element = i / bytes;
        const bool stored = element % step == 0 && element / step < 40;
        EXPECT_EQ(shadow[i], stored ? kTag : 3) << type << ", " << step << ", " << i;
      }
    }
  }
}

TEST(ShadowTest, LoadsAreNotSeen) {
  const auto kernel = CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %y_ptr: !tt.ptr<i32>",
                                             LoadText("x", "i32", 32) +
                                                 "    %y = arith.addi %x, %x : tensor<32xi32>\n" +
                                                 StoreText("y", "i32", 32)));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(32);
  std::vector<int32_t> y(33);
  std::vector<uint8_t> x_shadow(128);
  std::vector<uint8_t> y_shadow(132);
  ASSERT_TRUE(LaunchTagged(*kernel, {WithShadow(ArgumentOf(x), x_shadow),
                                     WithShadow(ArgumentOf(y), y_shadow)})
                  .ok());
  EXPECT_EQ(Tagged(x_shadow), 0);
  EXPECT_EQ(Tagged(y_shadow), 128);
  EXPECT_EQ(y_shadow[128], 0);
  // Shadows are of storages: an argument may begin anywhere in its one.
  std::fill(y_shadow.begin(), y_shadow.end(), 0);
  ASSERT_TRUE(LaunchTagged(*kernel, {ArgumentOf(x),
                                     WithShadow(KernelArgument::View(y.data() + 1, y.data(), 132),
                                                y_shadow)})
                  .ok());
  EXPECT_EQ(y_shadow[3], 0);
  EXPECT_EQ(y_shadow[4], kTag);
  EXPECT_EQ(Tagged(y_shadow), 128);
}

TEST(ShadowTest, AtomicsAndAddresses) {
  const auto kernel = CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %address: i64", R"(
    %one = arith.constant 1 : i32
    %on = arith.constant true
    %y_ptr = tt.int_to_ptr %address : i64 -> !tt.ptr<i32>
    %x = tt.atomic_rmw add, acq_rel, gpu, %x_ptr, %one, %on : (!tt.ptr<i32>, i32, i1) -> i32
    %next = tt.addptr %x_ptr, %one : !tt.ptr<i32>, i32
    %z = tt.atomic_cas acq_rel, gpu, %next, %one, %one : (!tt.ptr<i32>, i32, i32) -> i32
    tt.store %y_ptr, %one : !tt.ptr<i32>
)"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(4);
  std::vector<int32_t> y(4);
  std::vector<uint8_t> x_shadow(16);
  std::vector<uint8_t> y_shadow(16);
  ASSERT_TRUE(LaunchTagged(*kernel,
                           {WithShadow(ArgumentOf(x), x_shadow),
                            KernelArgument::Integer(reinterpret_cast<int64_t>(y.data()) + 4)},
                           {{"storage 2", y.data(), 16, y_shadow.data()}})
                  .ok());
  EXPECT_EQ(x_shadow, std::vector<uint8_t>({9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(y_shadow, std::vector<uint8_t>({0, 0, 0, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace tritonrl::ttir
