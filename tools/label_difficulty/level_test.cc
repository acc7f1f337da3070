#include "tools/label_difficulty/level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tritonrl {
namespace {

TEST(ParseLevelTest, ReadsTheLastLevelAndItsReason) {
  const auto answer = ParseLevel("Level: 3 is too high.\nReason: one convolution\nLevel: 1\n");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->level, 1);
  EXPECT_EQ(answer->reason, "one convolution");
  EXPECT_EQ(ParseLevel("**Reason:** fused ops\n**Level: 2**")->level, 2);
  EXPECT_EQ(ParseLevel("**Reason:** fused ops\n**Level: 2**")->reason, "fused ops");
  EXPECT_EQ(ParseLevel("level : 3.")->level, 3);
  EXPECT_EQ(ParseLevel("level : 3.")->reason, "");
}

TEST(ParseLevelTest, OtherFormsAreRefused) {
  for (const char* bad :
       {"", "2", "I think it is level 2.", "Level: 4", "Level: 0", "Level: two", "Level: 1 or 2"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseLevel(bad).status())) << bad;
  }
}

TEST(MajorityLevelTest, TiesGoToTheMedian) {
  EXPECT_EQ(MajorityLevel({2}), 2);
  EXPECT_EQ(MajorityLevel({1, 3, 3}), 3);
  EXPECT_EQ(MajorityLevel({1, 2, 3}), 2);
  EXPECT_EQ(MajorityLevel({3, 1, 2}), 2);
  EXPECT_EQ(MajorityLevel({1, 1, 3, 3}), 1);
  EXPECT_EQ(MajorityLevel({1, 1, 2, 3, 3}), 1);
  EXPECT_EQ(MajorityLevel({3, 3, 3, 1, 2}), 3);
}

TEST(NameWithoutLevelTest, DropsFoldersOfLevels) {
  EXPECT_EQ(NameWithoutLevel("softmax"), "softmax");
  EXPECT_EQ(NameWithoutLevel("level1/softmax"), "softmax");
  EXPECT_EQ(NameWithoutLevel("a/level2/b/c"), "a/b/c");
  EXPECT_EQ(NameWithoutLevel("levels/level1"), "levels/level1");
}

}  // namespace
}  // namespace tritonrl
