#include "trainer/grpo/task_passes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace tritonrl {
namespace {

// Tasks first, first + 1, ..., `count` of them.
std::vector<int> Pool(int first, int count) {
  std::vector<int> tasks;
  for (int i = 0; i < count; ++i) tasks.push_back(first + i);
  return tasks;
}

std::vector<int> Epoch(const TaskPasses& passes, int64_t epoch) {
  std::vector<int> tasks;
  for (int64_t i = 0; i < passes.epoch_length(); ++i) {
    tasks.push_back(passes.At(epoch * passes.epoch_length() + i));
  }
  return tasks;
}

TEST(TaskPassesTest, AnEpochHoldsEachTaskOnce) {
  const TaskPasses passes(7, {Pool(0, 50)}, {1});
  EXPECT_EQ(passes.epoch_length(), 50);
  std::set<std::vector<int>> orders;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    const std::vector<int> tasks = Epoch(passes, epoch);
    EXPECT_EQ(std::set<int>(tasks.begin(), tasks.end()).size(), 50u) << epoch;
    orders.insert(tasks);
  }
  EXPECT_EQ(orders.size(), 4u);  // each epoch in its own order
}

TEST(TaskPassesTest, AMixtureOfOneLevelIsAPassOverThatLevel) {
  const TaskPasses passes(7, {Pool(0, 30), Pool(100, 20)}, {1, 0});
  EXPECT_EQ(passes.epoch_length(), 30);
  const std::vector<int> tasks = Epoch(passes, 1);
  EXPECT_EQ(std::set<int>(tasks.begin(), tasks.end()).size(), 30u);
  for (const int task : tasks) EXPECT_LT(task, 100);
}

TEST(TaskPassesTest, EachLevelHasItsShareOfEveryEpochAndPassesOverItsTasks) {
  // Shares need not add up to 1: 3 to 1 of 40 places.
  const TaskPasses passes(7, {Pool(0, 12), Pool(100, 28)}, {3, 1});
  EXPECT_EQ(passes.epoch_length(), 40);
  std::vector<int> ones, twos;
  for (int64_t epoch = 0; epoch < 14; ++epoch) {
    int count = 0;
    for (const int task : Epoch(passes, epoch)) {
      count += task < 100;
      (task < 100 ? ones : twos).push_back(task);
    }
    EXPECT_EQ(count, 30) << epoch;
  }
  // 420 places of 12 tasks and 140 of 28: whole passes, each with every task once.
  for (size_t begin = 0; begin < ones.size(); begin += 12) {
    EXPECT_EQ(std::set<int>(ones.begin() + begin, ones.begin() + begin + 12).size(), 12u) << begin;
  }
  for (size_t begin = 0; begin < twos.size(); begin += 28) {
    EXPECT_EQ(std::set<int>(twos.begin() + begin, twos.begin() + begin + 28).size(), 28u) << begin;
  }
}

TEST(TaskPassesTest, SharesThatAreNoWholePlacesAddUpToTheEpoch) {
  const TaskPasses passes(0, {Pool(0, 3), Pool(10, 3), Pool(20, 4)}, {1, 1, 1});
  std::map<int, int> by_pool;
  for (const int task : Epoch(passes, 0)) ++by_pool[task / 10];
  EXPECT_EQ(by_pool[0] + by_pool[1] + by_pool[2], 10);
  for (const auto& [pool, count] : by_pool) EXPECT_GE(count, 3) << pool;
}

TEST(TaskPassesTest, ATinyShareHasAPlace) {
  const TaskPasses passes(0, {Pool(0, 5), Pool(10, 5)}, {1, 1e-6});
  std::map<int, int> by_pool;
  for (const int task : Epoch(passes, 0)) ++by_pool[task / 10];
  EXPECT_EQ(by_pool[1], 1);
  EXPECT_EQ(by_pool[0], 9);
}

TEST(TaskPassesTest, APlaceDependsOnTheSeedAlone) {
  const TaskPasses a(3, {Pool(0, 20), Pool(100, 10)}, {1, 1});
  const TaskPasses b(3, {Pool(0, 20), Pool(100, 10)}, {1, 1});
  const TaskPasses other(4, {Pool(0, 20), Pool(100, 10)}, {1, 1});
  // Out of order and across epochs, as a resumed run asks.
  for (const int64_t place : {200, 3, 61, 3, 999}) EXPECT_EQ(a.At(place), b.At(place));
  EXPECT_NE(Epoch(a, 0), Epoch(other, 0));
}

}  // namespace
}  // namespace tritonrl
