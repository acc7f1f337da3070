#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/hash.h"

namespace tritonrl {
namespace {

TEST(PhiloxTest, KnownAnswers) {
  // From the Random123 distribution, kat_vectors, philox4x32 10.
  EXPECT_EQ(Philox::Block({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      Philox::Block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, KeyAndStreamDecide) {
  Philox a(1, 2), same(1, 2), other_key(2, 2), other_stream(1, 3);
  uint32_t first = a.Next();
  EXPECT_EQ(first, same.Next());
  EXPECT_NE(first, other_key.Next());
  EXPECT_NE(first, other_stream.Next());
}

TEST(PhiloxTest, UniformAndNormalMoments) {
  Philox random(7);
  double sum = 0, sum_normal = 0, sum_square = 0;
  const int n = 20000;
  for (int i = 0; i < n; ++i) {
    double u = random.Uniform(), z = random.Normal();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    sum_normal += z;
    sum_square += z * z;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.01);  // five standard errors
  EXPECT_NEAR(sum_normal / n, 0, 0.036);
  EXPECT_NEAR(sum_square / n, 1, 0.05);
}

TEST(PhiloxTest, SkippedBlocksAreNormalNumbersThatNobodyDrew) {
  Philox all(5, 9);
  double fourth = 0;
  for (int i = 0; i < 4; ++i) fourth = all.Normal();
  Philox skips(5, 9);
  skips.Next();  // SkipBlocks discards the rest of this block
  skips.SkipBlocks(2);
  EXPECT_EQ(skips.Normal(), fourth);
  EXPECT_EQ(skips.Normal(), all.Normal());
}

TEST(PhiloxTest, BelowReachesEachValueAndNothingElse) {
  Philox random(3);
  std::set<uint64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.Below(5));
  EXPECT_EQ(seen, (std::set<uint64_t>{0, 1, 2, 3, 4}));
}

TEST(MixKeysTest, OrderAndLengthMatter) {
  EXPECT_EQ(MixKeys({1, 2, 3}), MixKeys({1, 2, 3}));
  EXPECT_NE(MixKeys({1, 2}), MixKeys({2, 1}));
  EXPECT_NE(MixKeys({1}), MixKeys({1, 0}));
}

TEST(HashTest, Sha256KnownAnswers) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(Hash64("abc"), 0xba7816bf8f01cfeau);
}

}  // namespace
}  // namespace tritonrl
