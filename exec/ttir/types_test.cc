#include "exec/ttir/types.h"

#include <vector>

#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

const Type kFloat = Type::Scalar(ScalarKind::kF32);

Type TensorOf(const std::vector<int64_t>& dims, const Type& element) {
  const std::optional<Type> type = Type::Tensor(dims, element);
  EXPECT_TRUE(type.has_value());
  return type.value_or(Type());
}

TEST(TypesTest, PrintAsMlirDoes) {
  EXPECT_EQ(kFloat.ToString(), "f32");
  EXPECT_EQ(TensorOf({16, 32}, kFloat).ToString(), "tensor<16x32xf32>");
  const Type pointer = Type::Scalar(ScalarKind::kF16, 1);
  EXPECT_EQ(TensorOf({8}, pointer).ToString(), "tensor<8x!tt.ptr<f16>>");
  EXPECT_EQ(TensorOf({8, 1}, kFloat).WithKind(Type::Kind::kBlockPointer).ToString(),
            "!tt.ptr<tensor<8x1xf32>>");
  EXPECT_EQ(TensorOf({8}, kFloat).WithKind(Type::Kind::kDescriptor).ToString(),
            "!tt.tensordesc<tensor<8xf32>>");
  EXPECT_EQ(Type::Scalar(ScalarKind::kI8, 2).ToString(), "!tt.ptr<!tt.ptr<i8>>");
}

TEST(TypesTest, AreSmallAndCompareByContent) {
  EXPECT_LE(sizeof(Type), 32u);
  EXPECT_EQ(TensorOf({4, 8}, kFloat), TensorOf({4, 8}, kFloat));
  EXPECT_NE(TensorOf({4, 8}, kFloat), TensorOf({8, 4}, kFloat));
  EXPECT_NE(TensorOf({1}, kFloat), kFloat);
  EXPECT_NE(TensorOf({4}, kFloat), TensorOf({4}, Type::Scalar(ScalarKind::kF32, 1)));
}

TEST(TypesTest, RefuseSizesThatTritonRefuses) {
  EXPECT_TRUE(Type::Tensor({1 << 20}, kFloat).has_value());
  EXPECT_FALSE(Type::Tensor({1 << 20, 2}, kFloat).has_value());
  EXPECT_FALSE(Type::Tensor({3}, kFloat).has_value());
  EXPECT_FALSE(Type::Tensor({0}, kFloat).has_value());
  EXPECT_FALSE(Type::Tensor({-8}, kFloat).has_value());
  EXPECT_FALSE(Type::Tensor(std::vector<int64_t>(64, int64_t{1} << 32), kFloat).has_value());
  EXPECT_FALSE(Type::Tensor(std::vector<int64_t>(64, 1), kFloat).has_value());
}

TEST(TypesTest, AxesComeAndGo) {
  const Type type = TensorOf({4, 8, 2}, kFloat);
  EXPECT_EQ(type.elements(), 64);
  EXPECT_EQ(type.WithoutAxis(1), TensorOf({4, 2}, kFloat));
  EXPECT_EQ(type.WithAxis(0, 16), TensorOf({16, 4, 8, 2}, kFloat));
  EXPECT_EQ(type.WithAxis(3, 1), TensorOf({4, 8, 2, 1}, kFloat));
  EXPECT_EQ(TensorOf({4}, kFloat).WithoutAxis(0), kFloat);
}

TEST(TypesTest, PointeesLoseOneLevel) {
  const Type pointers = TensorOf({4}, Type::Scalar(ScalarKind::kF32, 2));
  EXPECT_TRUE(pointers.is_pointer());
  EXPECT_EQ(pointers.Pointee(), TensorOf({4}, Type::Scalar(ScalarKind::kF32, 1)));
  EXPECT_EQ(pointers.Pointee().Pointee(), TensorOf({4}, kFloat));
  EXPECT_EQ(pointers.bit_width(), 64);
  EXPECT_FALSE(pointers.is_float());
}

}  // namespace
}  // namespace tritonrl::ttir
