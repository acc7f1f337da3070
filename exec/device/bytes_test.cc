#include "exec/device/bytes.h"

#include <vector>

#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

TEST(BytesTest, AreFilledCopiedComparedAndCounted) {
  std::vector<uint8_t> bytes(10);
  FillBytes(at::kCPU, bytes.data(), 7, 10);
  const std::vector<uint8_t> host = {1, 2, 7};
  CopyFromHost(at::kCPU, bytes.data(), host.data(), 3);
  EXPECT_TRUE(EqualsHost(at::kCPU, bytes.data(), host.data(), 3));
  EXPECT_FALSE(EqualsHost(at::kCPU, bytes.data() + 1, host.data(), 3));
  EXPECT_TRUE(HasByte(at::kCPU, bytes.data(), 2, 10));
  EXPECT_FALSE(HasByte(at::kCPU, bytes.data(), 2, 1));
  EXPECT_EQ(CountBytes(at::kCPU, bytes.data(), 10)[7], 8);
  EXPECT_TRUE(ReplaceByte(at::kCPU, bytes.data(), 7, 9, 10));
  EXPECT_FALSE(ReplaceByte(at::kCPU, bytes.data(), 7, 9, 10));
  ReplaceOthers(at::kCPU, bytes.data(), 9, 0, 10);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{0, 0, 9, 9, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(BytesOnHost(at::kCPU, bytes.data(), 10).const_data_ptr(), bytes.data());
}

TEST(BytesTest, NoBytesAreFine) {
  FillBytes(at::kCPU, nullptr, 7, 0);
  CopyFromHost(at::kCPU, nullptr, nullptr, 0);
  EXPECT_TRUE(EqualsHost(at::kCPU, nullptr, nullptr, 0));
  EXPECT_FALSE(HasByte(at::kCPU, nullptr, 0, 0));
}

}  // namespace
}  // namespace tritonrl::device
