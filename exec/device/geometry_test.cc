#include "exec/device/geometry.h"

#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

TensorRef Ref(std::vector<int64_t> shape, std::vector<int64_t> stride, int64_t offset = 0) {
  TensorRef tensor;
  tensor.shape = std::move(shape);
  tensor.stride = std::move(stride);
  tensor.offset = offset;
  return tensor;
}

TEST(GeometryTest, SpanReachesToTheLastElement) {
  EXPECT_EQ(*SpanOf(Ref({}, {}, 7)), 8);
  EXPECT_EQ(*SpanOf(Ref({3, 4}, {4, 1})), 12);
  EXPECT_EQ(*SpanOf(Ref({3, 4}, {1, 3}, 5)), 17);
  EXPECT_EQ(*SpanOf(Ref({3, 1000}, {1, 0})), 3);
  EXPECT_EQ(*SpanOf(Ref({3, 0}, {1 << 20, 1}, 9)), 0);
}

TEST(GeometryTest, NumbersThatOverflowAreRefused) {
  const int64_t huge = int64_t{1} << 60;
  EXPECT_FALSE(SpanOf(Ref({huge}, {huge})).ok());
  EXPECT_FALSE(SpanOf(Ref({huge, huge}, {0, 0})).ok());
  EXPECT_FALSE(SpanOf(Ref({0, huge, huge}, {0, 0, 0})).ok());
  EXPECT_FALSE(SpanOf(Ref({2}, {1}, huge)).ok());
  EXPECT_FALSE(SpanOf(Ref({2, 2, 2}, {huge, huge, huge})).ok());
  EXPECT_FALSE(SpanOf(Ref({-1}, {1})).ok());
  EXPECT_FALSE(SpanOf(Ref({2}, {-1})).ok());
  EXPECT_FALSE(SpanOf(Ref({2}, {1}, -1)).ok());
  EXPECT_FALSE(SpanOf(Ref({2}, {})).ok());
  EXPECT_FALSE(SpanOf(Ref(std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1))).ok());
}

TEST(GeometryTest, ExpandedAndWindowedTensorsShareElements) {
  EXPECT_TRUE(HasDistinctElements(Ref({3, 4}, {4, 1})));
  EXPECT_TRUE(HasDistinctElements(Ref({3, 4}, {1, 3})));
  EXPECT_TRUE(HasDistinctElements(Ref({1, 4}, {0, 1})));
  EXPECT_TRUE(HasDistinctElements(Ref({0, 4}, {0, 0})));
  EXPECT_FALSE(HasDistinctElements(Ref({3, 4}, {0, 1})));
  EXPECT_FALSE(HasDistinctElements(Ref({3, 4}, {1, 1})));
}

TEST(GeometryTest, NamesOfTypes) {
  EXPECT_EQ(ParseScalarType("bfloat16"), at::kBFloat16);
  EXPECT_FALSE(ParseScalarType("qint8").has_value());
  EXPECT_EQ(NameOf(at::kUInt16), "uint16");
  EXPECT_EQ(NameOf(at::kQInt8), "");
  EXPECT_EQ(BytesOf(at::kComplexDouble), 16);
}

}  // namespace
}  // namespace tritonrl::device
