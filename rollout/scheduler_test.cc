#include "rollout/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"

namespace tritonrl {
namespace {

TEST(Scheduler, ServesGroupsInOrderAndSharesPrompts) {
  Scheduler scheduler(3);
  scheduler.Add(0, 2);
  scheduler.Add(1, 3);
  std::vector<Scheduler::Admission> first = scheduler.Admit();
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0].group, 0);
  EXPECT_EQ(first[1].group, 0);
  EXPECT_EQ(first[2].group, 1);
  for (const auto& admission : first) EXPECT_EQ(admission.source, -1);
  EXPECT_TRUE(scheduler.Admit().empty());
  EXPECT_EQ(scheduler.num_waiting(), 2);

  // A slot of group 0 falls free: group 1's next sample copies the prompt from its first one.
  scheduler.Finish(first[0].slot);
  std::vector<Scheduler::Admission> second = scheduler.Admit();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].group, 1);
  EXPECT_EQ(second[0].sample, 1);
  EXPECT_EQ(second[0].slot, first[0].slot);
  EXPECT_EQ(second[0].source, first[2].slot);

  // A slot that holds the prompt is taken before others, without a copy.
  scheduler.Finish(first[1].slot);
  scheduler.Finish(first[2].slot);
  std::vector<Scheduler::Admission> third = scheduler.Admit();
  ASSERT_EQ(third.size(), 1u);
  EXPECT_EQ(third[0].slot, first[2].slot);
  EXPECT_EQ(third[0].source, first[2].slot);
  EXPECT_EQ(scheduler.num_waiting(), 0);
  EXPECT_EQ(scheduler.num_running(), 2);
}

TEST(Scheduler, CancelTakesWaitingSamplesOut) {
  Scheduler scheduler(2);
  scheduler.Add(7, 5);
  scheduler.Add(8, 1);
  scheduler.Admit();
  EXPECT_EQ(scheduler.CancelWaiting(7), (std::vector<int>{2, 3, 4}));
  EXPECT_TRUE(scheduler.CancelWaiting(7).empty());
  EXPECT_TRUE(scheduler.CancelWaiting(99).empty());
  EXPECT_EQ(scheduler.num_running(), 2);
  scheduler.Finish(0);
  ASSERT_EQ(scheduler.Admit().size(), 1u);
}

// Random operations against a plain record of what each slot holds: no slot is used twice, every
// sample runs once, each prompt is computed once, and copies come from slots that hold it.
TEST(Scheduler, RandomOperationsKeepItsPromises) {
  Philox random(5);
  for (int round = 0; round < 20; ++round) {
    const int num_slots = 1 + static_cast<int>(random.Below(9));
    Scheduler scheduler(num_slots);
    std::map<int, int64_t> running;   // slot -> group
    std::map<int, int64_t> contents;  // slot -> group whose prompt it holds
    std::map<int64_t, int> wanted;    // group -> samples
    std::set<int64_t> computed;
    std::set<int64_t> cancelled;
    std::set<std::pair<int64_t, int>> started;
    int64_t next_group = 0;
    int64_t expected = 0;
    for (int operation = 0; operation < 5000; ++operation) {
      const uint64_t kind = random.Below(20);
      if (kind < 3) {
        wanted[next_group] = 1 + static_cast<int>(random.Below(8));
        expected += wanted[next_group];
        scheduler.Add(next_group, wanted[next_group]);
        ++next_group;
      } else if (kind == 3 && next_group > 0) {
        const int64_t group = static_cast<int64_t>(random.Below(next_group));
        for (int sample : scheduler.CancelWaiting(group)) {
          ASSERT_TRUE(started.insert({group, sample}).second);
          cancelled.insert(group);
        }
      } else if (kind < 12 && !running.empty()) {
        auto it = std::next(running.begin(), static_cast<int>(random.Below(running.size())));
        scheduler.Finish(it->first);
        running.erase(it);
      } else {
        std::set<int64_t> computed_now;
        const std::vector<Scheduler::Admission> admissions = scheduler.Admit();
        // As the engine does: copies first, then computed prompts.
        for (const auto& admission : admissions) {
          ASSERT_EQ(running.count(admission.slot), 0u);
          running[admission.slot] = admission.group;
          ASSERT_TRUE(started.insert({admission.group, admission.sample}).second);
          ASSERT_LT(admission.sample, wanted[admission.group]);
          if (admission.source < 0) {
            computed_now.insert(admission.group);
          } else {
            ASSERT_EQ(contents[admission.source], admission.group);
            contents[admission.slot] = admission.group;
          }
        }
        for (const auto& admission : admissions) {
          if (admission.source < 0) contents[admission.slot] = admission.group;
        }
        for (int64_t group : computed_now) {
          ASSERT_TRUE(computed.insert(group).second) << "prompt computed twice";
        }
        ASSERT_TRUE(static_cast<int>(running.size()) == num_slots || scheduler.num_waiting() == 0);
      }
      ASSERT_EQ(scheduler.num_running(), static_cast<int>(running.size()));
      ASSERT_EQ(scheduler.num_waiting() + static_cast<int64_t>(started.size()), expected);
    }
    EXPECT_GT(started.size(), 500u);
  }
}

}  // namespace
}  // namespace tritonrl
