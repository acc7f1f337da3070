#include "exec/ttir/run/thread_races.h"

#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

// Shapes and places of accesses in these tests.
constexpr int kRow = 0;
constexpr int kTile = 1;
constexpr uint16_t kFirst = 10;
constexpr uint16_t kSecond = 11;

class ThreadRacesTest : public ::testing::Test {
 protected:
  bool Reads(int64_t address, int32_t element, int shape = kRow, int bytes = 4) {
    races_.BeginOperation(kSecond, shape);
    return races_.Read(address, bytes, element).has_value();
  }
  bool Writes(int64_t address, int32_t element, int shape = kRow, bool changes = true) {
    races_.BeginOperation(kFirst, shape);
    return races_.Write(address, 4, element, changes).has_value();
  }

  ThreadRaces races_;
};

TEST_F(ThreadRacesTest, OneThreadIsInOrder) {
  EXPECT_FALSE(Writes(64, 3));
  EXPECT_FALSE(Reads(64, 3));
  EXPECT_FALSE(Writes(64, 3));
  EXPECT_FALSE(Reads(68, 5));
}

TEST_F(ThreadRacesTest, OtherElementsAndShapesRace) {
  EXPECT_FALSE(Writes(64, 3));
  EXPECT_TRUE(Reads(64, 4));
  EXPECT_TRUE(Reads(64, 3, kTile));
  EXPECT_TRUE(Reads(64, kAllElements));
  races_.BeginOperation(kSecond, kRow);
  const auto race = races_.Read(64, 4, 4);
  ASSERT_TRUE(race.has_value());
  EXPECT_TRUE(race->writes);
  EXPECT_TRUE(race->of_same_shape);
  EXPECT_EQ(race->site, kFirst);
  EXPECT_EQ(race->element, 3);
}

TEST_F(ThreadRacesTest, BarriersOrder) {
  EXPECT_FALSE(Writes(64, 3));
  races_.Order();
  EXPECT_FALSE(Reads(64, 4));
  EXPECT_TRUE(Writes(64, 5));  // behind the read
  races_.Order();
  EXPECT_FALSE(Writes(64, 6));
}

TEST_F(ThreadRacesTest, EitherOfTwoReads) {
  EXPECT_FALSE(Reads(64, 1));
  EXPECT_FALSE(Reads(64, 2));
  EXPECT_TRUE(Writes(64, 2));
  races_.Order();
  EXPECT_FALSE(Reads(64, 2));
  EXPECT_FALSE(Reads(64, 1));
  EXPECT_TRUE(Writes(64, 2));
}

TEST_F(ThreadRacesTest, EqualValuesDoNot) {
  EXPECT_FALSE(Writes(64, 3));
  EXPECT_FALSE(Writes(64, 4, kRow, /*changes=*/false));
  EXPECT_FALSE(Reads(64, 3));
  EXPECT_TRUE(Writes(64, 4));
}

// A broadcast: all elements of the operation store one value.
TEST_F(ThreadRacesTest, SeveralElementsOfOneStore) {
  races_.BeginOperation(kFirst, kTile);
  for (int32_t i = 0; i < 4; ++i) EXPECT_FALSE(races_.Write(64, 4, i, /*changes=*/true));
  EXPECT_FALSE(Reads(64, 2, kTile));
  EXPECT_TRUE(Reads(64, 2, kRow));
}

TEST_F(ThreadRacesTest, AtomicOperations) {
  EXPECT_FALSE(Writes(64, 3));
  races_.BeginOperation(kSecond, kRow);
  EXPECT_FALSE(races_.Modify(64, 4, 3));  // hides the store from the next one, which races with it
  EXPECT_TRUE(races_.Modify(64, 4, 4));
  races_.BeginOperation(kSecond, kRow);
  EXPECT_FALSE(races_.Modify(64, 4, 5));
  EXPECT_TRUE(Reads(64, 3));
}

TEST_F(ThreadRacesTest, BytesOfOneWord) {
  EXPECT_FALSE(Writes(64, 3));
  EXPECT_TRUE(Reads(65, 4, kRow, 1));
  EXPECT_TRUE(Reads(64, 4, kRow, 8));
  EXPECT_FALSE(Reads(68, 4, kRow, 1));
}

}  // namespace
}  // namespace tritonrl::ttir
