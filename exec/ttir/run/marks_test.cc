// Bad elements of tensors: where they go, and where something depends on them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

using Kind = Finding::Kind;

using Texts = std::vector<std::string>;

// r = BODY of x, y and a mask of the first n elements, at which r is stored. Elements 20 to 31 of
// y are 0, and so is the shadow of x behind its element 20.
class BadElementsTest : public ::testing::Test {
 protected:
  LaunchFindings CheckMasked(const std::string& body, int64_t n) {
    const auto kernel = CompileText(
        KernelText("%x_ptr: !tt.ptr<i32>, %y_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<i32>, %n: i32",
                   absl::StrCat(LoadText("x", "i32", 32), LoadText("y", "i32", 32), R"(
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %limit = tt.splat %n : i32 -> tensor<32xi32>
    %mask = arith.cmpi slt, %i, %limit : tensor<32xi32>
    %zero = arith.constant dense<0> : tensor<32xi32>
    %s = tt.splat %r_ptr : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
    %at = tt.addptr %s, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
)",
                                body)));
    if (kernel == nullptr) return {};
    std::vector<int32_t> x(32, 5);
    std::vector<int32_t> y(32, 2);
    std::fill(y.begin() + 20, y.end(), 0);
    std::vector<int32_t> r(64);
    std::vector<uint8_t> shadow(128, 1);
    std::fill(shadow.begin() + 80, shadow.end(), 0);
    KernelArgument first = ArgumentOf(x);
    first.shadow = shadow.data();
    return Check(*kernel, {first, ArgumentOf(y), ArgumentOf(r), KernelArgument::Integer(n)});
  }
  // What the body leaves in %r, or the mask %m, is bad from element 20 on.
  size_t FindingsOf(const std::string& body, int64_t n) {
    return CheckMasked(body + "    tt.store %at, %r, %mask : tensor<32x!tt.ptr<i32>>\n", n)
        .list.size();
  }
};

constexpr char kQuotient[] = "    %q = arith.divsi %i, %y : tensor<32xi32>\n";

TEST_F(BadElementsTest, MasksAndSelectionsTakeThemAway) {
  const std::string one = "    %r = arith.addi %q, %x : tensor<32xi32>\n";
  EXPECT_EQ(FindingsOf(kQuotient + one, 20), 0u);
  EXPECT_EQ(FindingsOf(kQuotient + one, 21), 2u);  // the division, and the read
  const std::string selected =
      "    %r = arith.select %mask, %q, %zero : tensor<32xi1>, tensor<32xi32>\n";
  const std::string store = "    tt.store %at, %r : tensor<32x!tt.ptr<i32>>\n";
  EXPECT_TRUE(CheckMasked(kQuotient + selected + store, 20).list.empty());
  EXPECT_EQ(CheckMasked(kQuotient + selected + store, 21).list.size(), 1u);
}

TEST_F(BadElementsTest, OperandsThatDecideAlone) {
  // A quotient times 0, and a comparison with it behind a mask that is off.
  for (const std::string operation : {"arith.muli", "arith.andi"}) {
    const std::string body = absl::StrCat(kQuotient,
                                          "    %m = arith.extui %mask : tensor<32xi1> to "
                                          "tensor<32xi32>\n    %r = ",
                                          operation,
                                          " %m, %q : tensor<32xi32>\n    tt.store %at, %r : "
                                          "tensor<32x!tt.ptr<i32>>\n");
    EXPECT_TRUE(CheckMasked(body, 20).list.empty()) << operation;
    EXPECT_EQ(CheckMasked(body, 25).list.size(), 1u) << operation;
  }
  const std::string masks = absl::StrCat(kQuotient, R"(
    %small = arith.cmpi slt, %q, %limit : tensor<32xi32>
    %m = arith.andi %small, %mask : tensor<32xi1>
    tt.store %at, %i, %m : tensor<32x!tt.ptr<i32>>
)");
  EXPECT_TRUE(CheckMasked(masks, 20).list.empty());
  const LaunchFindings findings = CheckMasked(masks, 22);
  EXPECT_EQ(TextsOf(findings, Kind::kDivisionByZero),
            Texts({"an integer is divided by 0: 12 of 32 elements, first element 20; a mask "
                   "depends on it (unknown line)"}));
}

TEST_F(BadElementsTest, TheyGoThroughShapesAndReductions) {
  const std::string shapes = absl::StrCat(kQuotient, R"(
    %a = tt.reshape %q : tensor<32xi32> -> tensor<4x8xi32>
    %b = tt.trans %a {order = array<i32: 1, 0>} : tensor<4x8xi32> -> tensor<8x4xi32>
    %c = tt.trans %b {order = array<i32: 1, 0>} : tensor<8x4xi32> -> tensor<4x8xi32>
    %r = tt.reshape %c : tensor<4x8xi32> -> tensor<32xi32>
)");
  EXPECT_EQ(FindingsOf(shapes, 20), 0u);
  EXPECT_EQ(FindingsOf(shapes, 21), 1u);
  // A row of 8 elements with a bad one: rows 2 (elements 16 to 23) and 3.
  const std::string reduced = R"(
    %a = tt.reshape %q : tensor<32xi32> -> tensor<4x8xi32>
    %sum = "tt.reduce"(%a) <{axis = 1 : i32}> ({
    ^bb0(%u: i32, %v: i32):
      %w = arith.addi %u, %v : i32
      tt.reduce.return %w : i32
    }) : (tensor<4x8xi32>) -> tensor<4xi32>
    %e = tt.expand_dims %sum {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
    %f = tt.broadcast %e : tensor<4x1xi32> -> tensor<4x8xi32>
    %r = tt.reshape %f : tensor<4x8xi32> -> tensor<32xi32>
)";
  EXPECT_EQ(FindingsOf(kQuotient + reduced, 16), 0u);
  EXPECT_EQ(FindingsOf(kQuotient + reduced, 17), 1u);
  const std::string masked = absl::StrCat(
      "    %p = arith.divsi %i, %y : tensor<32xi32>\n",
      "    %q = arith.select %mask, %p, %zero : tensor<32xi1>, tensor<32xi32>\n", reduced);
  EXPECT_EQ(FindingsOf(masked, 20), 0u);
}

TEST_F(BadElementsTest, RegionsOfReductionsChoose) {
  // Of each pair, the element whose flag is set.
  const std::string body = absl::StrCat(kQuotient, R"(
    %v, %f = "tt.reduce"(%q, %mask) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %m: i1, %b: i32, %k: i1):
      %c = arith.select %m, %a, %b : i32
      %d = arith.ori %m, %k : i1
      tt.reduce.return %c, %d : i32, i1
    }) : (tensor<32xi32>, tensor<32xi1>) -> (i32, i1)
    %r = tt.splat %v : i32 -> tensor<32xi32>
)");
  EXPECT_EQ(FindingsOf(body, 20), 0u);
}

TEST_F(BadElementsTest, AddressesAndDecisions) {
  const std::string address = absl::StrCat(kQuotient, R"(
    %ones = arith.constant dense<1> : tensor<32xi32>
    %next = arith.addi %q, %ones : tensor<32xi32>
    %t = tt.addptr %s, %next : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
    %r = tt.load %t, %mask, %zero : tensor<32x!tt.ptr<i32>>
)");
  EXPECT_EQ(FindingsOf(address, 20), 0u);
  EXPECT_EQ(FindingsOf(address, 21), 1u);
  const std::string branch = R"(
    %one = arith.constant 1 : i32
    %p = arith.divsi %one, %n : i32
    %b = arith.cmpi sgt, %p, %one : i32
    scf.if %b {
      tt.store %at, %i : tensor<32x!tt.ptr<i32>>
    }
)";
  EXPECT_TRUE(CheckMasked(branch, 5).list.empty());
  EXPECT_EQ(TextsOf(CheckMasked(branch, 0), Kind::kDivisionByZero),
            Texts({"an integer is divided by 0: 1 of 1 elements, first element 0; what runs "
                   "depends on it (unknown line)"}));
}

TEST_F(BadElementsTest, LoopsCarryThem) {
  const std::string loop = absl::StrCat(kQuotient, R"(
    %lower = arith.constant 0 : i32
    %upper = arith.constant 3 : i32
    %one = arith.constant 1 : i32
    %r = scf.for %k = %lower to %upper step %one iter_args(%sum = %x) -> (tensor<32xi32>) : i32 {
      %next = arith.addi %sum, %q : tensor<32xi32>
      scf.yield %next : tensor<32xi32>
    }
)");
  EXPECT_EQ(FindingsOf(loop, 20), 0u);
  EXPECT_EQ(FindingsOf(loop, 21), 2u);
}

}  // namespace
}  // namespace tritonrl::ttir
