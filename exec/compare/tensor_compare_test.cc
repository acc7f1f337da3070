#include "exec/compare/tensor_compare.h"

#include <gtest/gtest.h>
#include <string.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tritonrl {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// Leaves whose tensors are stored one after the other in memory.
struct Values {
  std::vector<Leaf> leaves;
  std::string memory;

  template <typename T>
  Values& Add(const char* dtype, const std::vector<T>& data, std::vector<int64_t> shape = {}) {
    Leaf leaf;
    leaf.kind = Leaf::Kind::kTensor;
    leaf.type_name = "tensor";
    leaf.dtype = dtype;
    leaf.type = *ParseDType(dtype);
    leaf.shape = shape.empty() ? std::vector<int64_t>{static_cast<int64_t>(data.size())} : shape;
    leaf.elements = leaf.distinct_elements = data.size() * sizeof(T) / SizeOf(leaf.type);
    leaf.offset = memory.size();
    memory.append(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T));
    leaves.push_back(leaf);
    return *this;
  }
  Values& Number(double number) {
    Leaf leaf;
    leaf.kind = Leaf::Kind::kNumber;
    leaf.type_name = "number";
    leaf.number = number;
    leaves.push_back(leaf);
    return *this;
  }
  Values& Other(const char* type_name, const char* text) {
    Leaf leaf;
    leaf.type_name = type_name;
    leaf.text = text;
    leaves.push_back(leaf);
    return *this;
  }
};

Comparison Compare(const Values& want, const Values& got) {
  return CompareOutputs({want.leaves, want.memory}, {got.leaves, got.memory}, Tolerance());
}

std::string Kind(const Values& want, const Values& got) {
  const Comparison result = Compare(want, got);
  return result.equal ? "" : result.mismatch.kind();
}

Values Floats(const std::vector<float>& data) { return Values().Add("float32", data); }
Values Doubles(const std::vector<double>& data) { return Values().Add("float64", data); }

TEST(TensorCompareTest, Tolerance) {
  EXPECT_EQ(Kind(Floats({0, 100}), Floats({0.0099f, 101})), "");
  EXPECT_EQ(Kind(Floats({0, 100}), Floats({0.0101f, 100})), "value");
  EXPECT_EQ(Kind(Floats({0, 100}), Floats({0, 101.02f})), "value");
  EXPECT_EQ(Kind(Floats({0, -100}), Floats({0, -101})), "");
}

TEST(TensorCompareTest, SpecialValues) {
  EXPECT_EQ(Kind(Doubles({kInf, -kInf, kNan}), Doubles({kInf, -kInf, kNan})), "");
  EXPECT_EQ(Kind(Doubles({kInf}), Doubles({-kInf})), "value");
  EXPECT_EQ(Kind(Doubles({kInf}), Doubles({1e30})), "value");
  EXPECT_EQ(Kind(Doubles({1e30}), Doubles({kInf})), "value");
  EXPECT_EQ(Kind(Doubles({1}), Doubles({kNan})), "nan");
  EXPECT_EQ(Kind(Doubles({kNan}), Doubles({1})), "value");
  EXPECT_EQ(Kind(Doubles({kInf}), Doubles({kNan})), "nan");
  EXPECT_EQ(Kind(Doubles({1e308}), Doubles({-1e308})), "value");  // the error itself overflows
  EXPECT_EQ(Kind(Floats({}), Floats({})), "");
}

TEST(TensorCompareTest, Structure) {
  const Values one = Floats({1, 2, 3});
  EXPECT_EQ(Kind(one, Values(one).Number(1)), "count");
  EXPECT_EQ(Kind(one, Values().Number(1)), "type");
  EXPECT_EQ(Kind(one, Values().Other("NoneType", "null")), "type");
  EXPECT_EQ(Kind(one, Doubles({1, 2, 3})), "dtype");
  EXPECT_EQ(Kind(Floats({1, 2}), Values().Add<float>("float32", {1, 2}, {1, 2})), "shape");
  EXPECT_EQ(Kind(Values().Number(1), Values().Number(1.005)), "");
  EXPECT_EQ(Kind(Values().Number(1), Values().Number(0)), "value");
  EXPECT_EQ(Kind(Values().Number(kNan), Values().Number(kNan)), "");
  EXPECT_EQ(Kind(Values().Other("str", "\"a\""), Values().Other("str", "\"a\"")), "");
  EXPECT_EQ(Kind(Values().Other("str", "\"a\""), Values().Other("str", "\"b\"")), "value");
  Values elsewhere = one;
  elsewhere.leaves[0].device = "cuda";
  EXPECT_EQ(Kind(elsewhere, one), "device");
  Values sparse = one;
  sparse.leaves[0].layout = "sparse_coo";
  sparse.leaves[0].offset.reset();
  EXPECT_EQ(Kind(one, sparse), "type");
  Values missing = one;
  missing.leaves[0].offset.reset();
  EXPECT_EQ(Kind(one, missing), "type");
  EXPECT_EQ(Compare(one, Values()).message, "0 outputs, expected 1");
}

TEST(TensorCompareTest, Evidence) {
  const Values want = Values().Add<float>("float32", {0, 0, 0, 0, 0, 0}, {2, 3});
  const Values got = Values().Add<float>("float32", {0, 0, 0, 0, 2.5f, 1}, {2, 3});
  const Comparison result = Compare(want, got);
  EXPECT_FALSE(result.equal);
  EXPECT_EQ(result.mismatch.bad_elements(), 2);
  EXPECT_EQ(result.mismatch.elements(), 6);
  EXPECT_EQ(result.mismatch.max_error(), 2.5);
  EXPECT_EQ(*result.max_error, 2.5);
  EXPECT_EQ(result.message,
            "output 0: 2 of 6 elements differ, largest error 2.5; element 4 is 2.5, expected 0");
  EXPECT_EQ(result.mismatch.got(), "2.5");
  EXPECT_EQ(result.mismatch.want(), "0");
  // The second output is compared only if the first is right.
  EXPECT_EQ(Compare(Values(want).Number(1), Values(want).Number(2)).mismatch.output(), 1);
  const Comparison near = Compare(Floats({1}), Floats({1.005f}));
  EXPECT_TRUE(near.equal);
  EXPECT_NEAR(*near.max_error, 0.005, 1e-6);
}

TEST(TensorCompareTest, IntegersAndBooleans) {
  EXPECT_EQ(Kind(Values().Add<int64_t>("int64", {1, -5}), Values().Add<int64_t>("int64", {1, -5})),
            "");
  EXPECT_EQ(Kind(Values().Add<int64_t>("int64", {1}), Values().Add<int64_t>("int64", {2})),
            "value");
  EXPECT_EQ(Kind(Values().Add<uint8_t>("uint8", {255}), Values().Add<uint8_t>("uint8", {255})), "");
  EXPECT_EQ(Kind(Values().Add<int8_t>("int8", {-1}), Values().Add<int8_t>("int8", {1})), "value");
  EXPECT_EQ(Kind(Values().Add<uint8_t>("bool", {1, 0}), Values().Add<uint8_t>("bool", {1, 1})),
            "value");
  EXPECT_EQ(
      Kind(Values().Add<uint64_t>("uint64", {~uint64_t{0}}), Values().Add<uint64_t>("uint64", {0})),
      "value");
}

// Returns the value of one element with these bits, read from the mismatch with 0.
template <typename T>
double ValueOf(const char* dtype, T bits) {
  const Comparison result = CompareOutputs({Values().Number(0).leaves, ""},
                                           {Values().Number(0).leaves, ""}, {.atol = 0, .rtol = 0});
  EXPECT_TRUE(result.equal);
  const Values want = Values().Add<T>(dtype, {0}), got = Values().Add<T>(dtype, {bits});
  const Comparison c =
      CompareOutputs({want.leaves, want.memory}, {got.leaves, got.memory}, {.atol = 0, .rtol = 0});
  return c.equal ? 0 : atof(c.mismatch.got().c_str());
}

TEST(TensorCompareTest, SmallFloats) {
  EXPECT_EQ(ValueOf<uint16_t>("float16", 0x3C00), 1);
  EXPECT_EQ(ValueOf<uint16_t>("float16", 0xC100), -2.5);
  EXPECT_EQ(ValueOf<uint16_t>("float16", 0x7BFF), 65504);
  EXPECT_NEAR(ValueOf<uint16_t>("float16", 0x0001), 5.960464477539063e-08, 1e-15);
  EXPECT_EQ(ValueOf<uint16_t>("float16", 0x8000), 0);
  EXPECT_TRUE(std::isinf(ValueOf<uint16_t>("float16", 0x7C00)));
  EXPECT_TRUE(std::isnan(ValueOf<uint16_t>("float16", 0x7E00)));
  EXPECT_EQ(ValueOf<uint16_t>("bfloat16", 0x3F80), 1);
  EXPECT_EQ(ValueOf<uint16_t>("bfloat16", 0xC020), -2.5);
  EXPECT_TRUE(std::isnan(ValueOf<uint16_t>("bfloat16", 0x7FC0)));
  EXPECT_EQ(ValueOf<uint8_t>("float8_e4m3fn", 0x38), 1);
  EXPECT_EQ(ValueOf<uint8_t>("float8_e4m3fn", 0x7E), 448);
  EXPECT_TRUE(std::isnan(ValueOf<uint8_t>("float8_e4m3fn", 0x7F)));
  EXPECT_EQ(ValueOf<uint8_t>("float8_e5m2", 0x3C), 1);
  EXPECT_EQ(ValueOf<uint8_t>("float8_e5m2", 0x7B), 57344);
  EXPECT_TRUE(std::isinf(ValueOf<uint8_t>("float8_e5m2", 0xFC)));
}

TEST(TensorCompareTest, ComplexNumbers) {
  const Values want = Values().Add<float>("complex64", {3, 4}, {1});
  EXPECT_EQ(Kind(want, Values().Add<float>("complex64", {3, 4.01f}, {1})), "");
  EXPECT_EQ(Kind(want, Values().Add<float>("complex64", {4, 3}, {1})), "value");
  EXPECT_EQ(Kind(want, Values().Add<float>("complex64", {3, NAN}, {1})), "nan");
}

TEST(TensorCompareTest, SameTensorsIsBitForBit) {
  const Values a = Floats({1, NAN});
  Values b = a;
  EXPECT_TRUE(SameTensors({a.leaves, a.memory}, {b.leaves, b.memory}));
  b.memory[0] ^= 1;
  EXPECT_FALSE(SameTensors({a.leaves, a.memory}, {b.leaves, b.memory}));
  const Values zero = Floats({0}), minus = Floats({-0.0f});
  EXPECT_FALSE(SameTensors({zero.leaves, zero.memory}, {minus.leaves, minus.memory}));
  Values missing = a;
  missing.leaves[0].offset.reset();
  EXPECT_FALSE(SameTensors({a.leaves, a.memory}, {missing.leaves, missing.memory}));
  EXPECT_FALSE(SameTensors({a.leaves, a.memory}, {{}, ""}));
}

// Appends `exact` and `slack` to the memory of `want` and returns the tolerance that refers to
// them.
Tolerance Exactly(const std::vector<float>& exact, const std::vector<float>& slack, double absolute,
                  double relative, Values* want, std::vector<std::optional<ExactLeaf>>* leaves) {
  Values more;
  more.memory = want->memory;
  more.Add("float32", exact).Add("float32", slack);
  want->memory = more.memory;
  *leaves = {ExactLeaf{more.leaves[0], more.leaves[1], absolute, relative}};
  return {.atol = 1e-2, .rtol = 1e-2, .exact = leaves};
}

TEST(TensorCompareTest, AFloat64ResultTakesThePlaceOfTheOther) {
  Values want = Floats({1, 2, 3});
  std::vector<std::optional<ExactLeaf>> leaves;
  const Tolerance tolerance = Exactly({1, 2, 3.5f}, {0, 0.5f, 0}, 0.001, 0.01, &want, &leaves);
  const auto compare = [&](const Values& got) {
    return CompareOutputs({want.leaves, want.memory}, {got.leaves, got.memory}, tolerance);
  };
  const Comparison right = compare(Floats({1.002f, 2.26f, 3.5f}));
  EXPECT_TRUE(right.equal) << right.message;
  EXPECT_NEAR(*right.worst_share, 0.5, 1e-3);
  EXPECT_NEAR(right.worst_error, 0.26, 1e-6);  // the tolerance is 0.521
  EXPECT_NEAR(right.worst_tolerance, 0.521, 1e-6);
  const Comparison wrong = compare(Floats({1, 2, 3}));  // the reference's own result
  EXPECT_FALSE(wrong.equal);
  EXPECT_NEAR(wrong.mismatch.error(), 0.5, 1e-6);
  EXPECT_NEAR(wrong.mismatch.tolerance(), 0.036, 1e-6);
  EXPECT_NE(wrong.message.find("in float64 within 0.036"), std::string::npos) << wrong.message;
  EXPECT_EQ(compare(Floats({1, std::nanf(""), 3.5f})).mismatch.kind(), "nan");
  EXPECT_FALSE(compare(Floats({1, 2, static_cast<float>(kInf)})).equal);
}

TEST(TensorCompareTest, WhereNothingIsFiniteAnythingLikeItIsRight) {
  const float inf = static_cast<float>(kInf), nan = std::nanf("");
  Values want = Floats({inf, nan, inf});
  std::vector<std::optional<ExactLeaf>> leaves;
  const Tolerance tolerance = Exactly({1e38f, 5, inf}, {0, 0, 0}, 0.1, 0, &want, &leaves);
  const auto equal = [&](const Values& got) {
    return CompareOutputs({want.leaves, want.memory}, {got.leaves, got.memory}, tolerance).equal;
  };
  EXPECT_TRUE(equal(Floats({inf, nan, inf})));
  EXPECT_TRUE(equal(Floats({1e38f, 5, inf})));
  EXPECT_FALSE(equal(Floats({nan, nan, inf})));
  EXPECT_FALSE(equal(Floats({inf, 6, inf})));
  EXPECT_FALSE(equal(Floats({inf, nan, 1})));
  EXPECT_FALSE(equal(Floats({inf, nan, -inf})));
}

TEST(TensorCompareTest, AFloat64ResultOfAnotherSizeIsNotUsed) {
  Values want = Floats({1, 2, 3});
  std::vector<std::optional<ExactLeaf>> leaves;
  const Tolerance tolerance = Exactly({1, 2}, {0, 0}, 0, 0, &want, &leaves);
  const Values got = Floats({1.001f, 2, 3});
  EXPECT_TRUE(
      CompareOutputs({want.leaves, want.memory}, {got.leaves, got.memory}, tolerance).equal);
}

TEST(TensorCompareTest, AValueInAListIsNoValueOfItsOwn) {
  Values alone, listed;
  alone.Add<float>("float32", {1, 2});
  listed.Add<float>("float32", {1, 2});
  alone.leaves[0].bare = true;
  EXPECT_EQ(Kind(alone, alone), "");
  EXPECT_EQ(Kind(listed, listed), "");
  EXPECT_EQ(Kind(alone, listed), "type");
  EXPECT_EQ(Kind(listed, alone), "type");
  EXPECT_EQ(Compare(alone, listed).message,
            "the result is a value in a list, tuple or dict, expected a value of its own");
}

}  // namespace
}  // namespace tritonrl
