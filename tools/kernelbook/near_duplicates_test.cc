#include "tools/kernelbook/near_duplicates.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace tritonrl {
namespace {

// A form with the shingles first, first + 1, ..., last - 1.
ProgramForm Range(uint64_t first, uint64_t last, uint64_t library = 1) {
  ProgramForm form{.library = library};
  form.shingles.resize(last - first);
  std::iota(form.shingles.begin(), form.shingles.end(), first);
  return form;
}

TEST(NearDuplicatesTest, JaccardOfSets) {
  EXPECT_EQ(Jaccard({1, 2, 3}, {1, 2, 3}), 1);
  EXPECT_EQ(Jaccard({1, 2, 3}, {3, 4}), 0.25);
  EXPECT_EQ(Jaccard({1}, {}), 0);
  EXPECT_EQ(Jaccard({}, {}), 1);
}

TEST(NearDuplicatesTest, FindsTheMostSimilarAboveTheThreshold) {
  NearDuplicates programs(0.8);
  programs.Add(Range(0, 100));
  programs.Add(Range(5, 100));
  programs.Add(Range(1000, 1100));
  const auto found = programs.Find(Range(4, 100));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->first, 1);
  EXPECT_NEAR(found->second, 95.0 / 96, 1e-9);
  EXPECT_FALSE(programs.Find(Range(30, 110)).has_value());
  EXPECT_FALSE(programs.Find(Range(0, 100, /*library=*/2)).has_value());
}

TEST(NearDuplicatesTest, OfEquallySimilarOnesTheFirst) {
  NearDuplicates programs(0.8);
  for (int i = 0; i < 3; ++i) programs.Add(Range(0, 50));
  EXPECT_EQ(programs.Find(Range(0, 50))->first, 0);
}

TEST(NearDuplicatesTest, AThresholdAboveOneFindsNothing) {
  NearDuplicates programs(2);
  programs.Add(Range(0, 50));
  EXPECT_FALSE(programs.Find(Range(0, 50)).has_value());
}

// 2,000 pairs at the threshold; by the bands' arithmetic 0.4 of them are missed on average.
TEST(NearDuplicatesTest, MinHashMissesFewPairsAtTheThreshold) {
  NearDuplicates programs(0.8);
  int found = 0;
  for (uint64_t pair = 0; pair < 2000; ++pair) {
    const uint64_t start = 1000003 * pair;
    programs.Add(Range(start, start + 90));
    found += programs.Find(Range(start + 10, start + 100)).has_value();  // 80 of 100 in common
  }
  EXPECT_GE(found, 1990);
}

}  // namespace
}  // namespace tritonrl
