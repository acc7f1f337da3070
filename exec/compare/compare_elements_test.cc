#include "exec/compare/compare_elements.h"

#include <gtest/gtest.h>
#include <string.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "exec/compare/tensor_compare.h"

namespace tritonrl {
namespace {

template <typename T>
const char* Bytes(const std::vector<T>& values) {
  return reinterpret_cast<const char*>(values.data());
}

TEST(AllCloseTest, TheEdgeOfTheToleranceIsInside) {
  std::vector<float> want(kAllCloseBlock, 2.0f), got = want;
  double largest = 0;
  got[7] = 2.5f;
  EXPECT_TRUE(BlockAllClose(DType::kFloat32, Bytes(want), Bytes(got), 0.5, 0, &largest));
  EXPECT_EQ(largest, 0.5);
  EXPECT_TRUE(BlockAllClose(DType::kFloat32, Bytes(want), Bytes(got), 0, 0.25, &largest));
  EXPECT_FALSE(BlockAllClose(DType::kFloat32, Bytes(want), Bytes(got), 0, 0.2499, &largest));
  got[7] = 1.5f;
  EXPECT_FALSE(BlockAllClose(DType::kFloat32, Bytes(want), Bytes(got), 0.4999, 0, &largest));
}

TEST(AllCloseTest, SpecialValuesAreLeftToOthers) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const auto& [a, b] : std::vector<std::pair<float, float>>{
           {kInf, kInf}, {kInf, 1}, {1, kInf}, {-kInf, kInf}, {NAN, NAN}, {1, NAN}, {NAN, 1}}) {
    std::vector<float> want(kAllCloseBlock, 1.0f), got = want;
    want[1023] = a;
    got[1023] = b;
    double largest = 0;
    EXPECT_FALSE(BlockAllClose(DType::kFloat32, Bytes(want), Bytes(got), 1e-2, 1e-2, &largest));
    EXPECT_EQ(largest, 0);
  }
}

TEST(AllCloseTest, EveryHalfIsWidenedRightly) {
  // Compares all 65,536 halves with themselves, and their magnitudes with values computed as
  // doubles.
  for (int base = 0; base < 65536; base += kAllCloseBlock) {
    std::vector<uint16_t> bits(kAllCloseBlock), zeros(kAllCloseBlock, 0);
    double most = 0;
    bool finite = true;
    for (int i = 0; i < kAllCloseBlock; ++i) {
      bits[i] = static_cast<uint16_t>(base + i);
      const int exponent = bits[i] >> 10 & 31, mantissa = bits[i] & 1023;
      finite = finite && exponent != 31;
      const double value =
          exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      most = std::max(most, value);
    }
    double largest = 0;
    EXPECT_EQ(BlockAllClose(DType::kFloat16, Bytes(bits), Bytes(bits), 0, 0, &largest), finite);
    EXPECT_EQ(BlockAllClose(DType::kFloat16, Bytes(zeros), Bytes(bits), 1e6, 0, &largest), finite);
    if (finite) {
      EXPECT_EQ(largest, most) << base;
    }
  }
}

TEST(AllCloseTest, OtherTypesAreLeftToOthers) {
  const std::vector<int64_t> same(kAllCloseBlock, 5);
  double largest = 0;
  EXPECT_FALSE(BlockAllClose(DType::kInt64, Bytes(same), Bytes(same), 1, 1, &largest));
  const std::vector<double> doubles(kAllCloseBlock, 5);
  EXPECT_TRUE(BlockAllClose(DType::kFloat64, Bytes(doubles), Bytes(doubles), 0, 0, &largest));
}

// Tensors large enough for several threads: the result is that of one loop, wherever the bad
// elements are.
class LargeTensorTest : public testing::TestWithParam<const char*> {};

TEST_P(LargeTensorTest, FindsWhatALoopFinds) {
  Leaf leaf;
  leaf.kind = Leaf::Kind::kTensor;
  leaf.type_name = "tensor";
  leaf.dtype = GetParam();
  leaf.type = *ParseDType(GetParam());
  leaf.elements = leaf.distinct_elements = 3'000'017;
  leaf.shape = {leaf.elements};
  leaf.offset = 0;
  const int64_t size = SizeOf(leaf.type);
  Philox random(3);
  std::string want(leaf.bytes(), '\0');
  for (int64_t i = 0; i < leaf.elements; ++i) {
    const float value = static_cast<float>(random.Uniform());
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (size == 2) bits >>= 16;
    memcpy(&want[i * size], &bits, size);
  }
  std::string got = want;
  const std::vector<Leaf> leaves = {leaf};
  EXPECT_TRUE(CompareOutputs({leaves, want}, {leaves, got}, Tolerance{}).equal);
  for (const int64_t bad : {int64_t{0}, int64_t{1'234'567}, leaf.elements - 1}) {
    got = want;
    for (const int64_t at : {bad, leaf.elements - 1}) got[at * size + size - 1] |= '\x80';  // sign
    const Comparison found = CompareOutputs({leaves, want}, {leaves, got}, Tolerance{});
    EXPECT_FALSE(found.equal);
    EXPECT_EQ(found.mismatch.bad_elements(), bad == leaf.elements - 1 ? 1 : 2);
    EXPECT_NE(found.message.find("; element " + std::to_string(bad) + " is"), std::string::npos)
        << found.message;
    EXPECT_EQ(*found.max_error, found.mismatch.max_error());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LargeTensorTest, testing::Values("float32", "bfloat16"));

}  // namespace
}  // namespace tritonrl
