#include <gtest/gtest.h>

#include <vector>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {
namespace {

Leaf At(uint64_t address, int64_t elements, bool dense = true) {
  Leaf leaf;
  leaf.kind = Leaf::Kind::kTensor;
  leaf.elements = elements;
  leaf.address = address;
  leaf.dense = dense;
  return leaf;
}

TEST(TensorSharingTest, SameAddressOrOverlap) {
  EXPECT_EQ(FindSharedOutputs({At(100, 4), At(116, 4)}, {At(132, 4)}), "");
  EXPECT_EQ(FindSharedOutputs({At(100, 4), At(100, 4)}, {}),
            "outputs 0 and 1 lie in the same memory");
  EXPECT_EQ(FindSharedOutputs({At(100, 4), At(112, 4)}, {}),
            "outputs 0 and 1 lie in the same memory");
  EXPECT_EQ(FindSharedOutputs({At(112, 4), At(100, 4)}, {}),
            "outputs 0 and 1 lie in the same memory");
  EXPECT_EQ(FindSharedOutputs({At(50, 2), At(100, 4)}, {At(0, 1), At(100, 8)}),
            "output 1 lies in the memory of input 1");
}

TEST(TensorSharingTest, ViewsThatInterleaveAndUnknownAddressesDoNotCount) {
  EXPECT_EQ(FindSharedOutputs({At(100, 8, false), At(104, 8, false)}, {}), "");
  EXPECT_EQ(FindSharedOutputs({At(100, 0), At(100, 4)}, {}), "");
  Leaf unknown = At(100, 4);
  unknown.address.reset();
  EXPECT_EQ(FindSharedOutputs({unknown, At(100, 4)}, {}), "");
  // A hostile address near the end of the range.
  EXPECT_EQ(FindSharedOutputs({At(~uint64_t{0}, 4), At(0, 4)}, {}), "");
}

}  // namespace
}  // namespace tritonrl
