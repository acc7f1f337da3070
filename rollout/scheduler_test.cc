#include "rollout/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"

namespace tritonrl {
namespace {

using Step = Scheduler::Step;

// Collects all draws of a step.
void CollectAll(const Step& step, Scheduler* scheduler) {
  for (const Scheduler::Draw& draw : step.draws) scheduler->Collected(draw);
}

TEST(Scheduler, AGroupsPromptIsComputedOnceAndShared) {
  Scheduler scheduler({.num_pages = 20, .page_size = 4, .max_running = 8, .max_step_tokens = 100});
  scheduler.Add(0, 10, 6, 3);
  Step step = scheduler.Schedule();
  ASSERT_EQ(step.slices.size(), 1u);
  EXPECT_EQ(step.slices[0].sample, -1);
  EXPECT_EQ(step.slices[0].count, 10);
  EXPECT_EQ(step.slices[0].draws, 3);
  EXPECT_EQ(step.draws.size(), 3u);
  EXPECT_TRUE(scheduler.Schedule().slices.size() == 3) << "their first tokens are in their slots";

  // Two whole pages in common; two copies of the third, and the last sample has it for its own.
  EXPECT_EQ(scheduler.pool().num_pages() - scheduler.pool().num_free(), 2 + 3);
  EXPECT_EQ(scheduler.stats().prompt_tokens, 10);
  EXPECT_EQ(scheduler.stats().shared_tokens, 20);
  for (int sample = 0; sample < 3; ++sample) scheduler.Finish(0, sample);
  EXPECT_EQ(scheduler.pool().num_free(), 20);
}

TEST(Scheduler, CopiesComeBeforeTheFirstWrite) {
  Scheduler scheduler({.num_pages = 20, .page_size = 4, .max_running = 8, .max_step_tokens = 100});
  scheduler.Add(0, 6, 6, 2);
  Step step = scheduler.Schedule();
  const int32_t tail = step.slices[0].pages[1];
  CollectAll(step, &scheduler);
  step = scheduler.Schedule();
  ASSERT_EQ(step.copies.size(), 1u);
  EXPECT_EQ(step.copies[0].from, tail);
  ASSERT_EQ(step.slices.size(), 2u);
  EXPECT_EQ(step.slices[0].pages[1], step.copies[0].to);
  EXPECT_EQ(step.slices[1].pages[1], tail);
  EXPECT_EQ(step.slices[0].pages[0], step.slices[1].pages[0]);
  EXPECT_EQ(step.slices[0].first, 6);
}

TEST(Scheduler, PromptsComeInChunksBesideAllThatDecode) {
  Scheduler scheduler({.num_pages = 100, .page_size = 4, .max_running = 4, .max_step_tokens = 8});
  scheduler.Add(0, 3, 50, 2);
  CollectAll(scheduler.Schedule(), &scheduler);
  scheduler.Add(1, 20, 5, 2);
  std::vector<int64_t> chunks;
  for (int i = 0; i < 4; ++i) {
    const Step step = scheduler.Schedule();
    CollectAll(step, &scheduler);
    ASSERT_EQ(step.slices.size(), 3u);
    EXPECT_EQ(step.slices[0].sample, 0);
    EXPECT_EQ(step.slices[1].sample, 1);
    EXPECT_EQ(step.slices[2].group, 1);
    chunks.push_back(step.slices[2].count);
  }
  EXPECT_EQ(chunks, (std::vector<int64_t>{6, 6, 6, 2}));
  EXPECT_EQ(scheduler.Schedule().slices.size(), 4u);
}

TEST(Scheduler, SamplesThatWaitHaveTheirFirstTokenFromTheOnePrompt) {
  Scheduler scheduler({.num_pages = 100, .page_size = 4, .max_running = 2, .max_step_tokens = 64});
  scheduler.Add(0, 9, 3, 5);
  const Step step = scheduler.Schedule();
  ASSERT_EQ(step.draws.size(), 5u);
  EXPECT_EQ(step.draws[0].slot, 0);
  EXPECT_EQ(step.draws[1].slot, 1);
  EXPECT_EQ(step.draws[2].slot, -1);
  CollectAll(step, &scheduler);
  scheduler.Finish(0, 0);
  scheduler.Finish(0, 3);  // its first token was a stop token
  std::set<int> samples;
  for (const Scheduler::Slice& slice : scheduler.Schedule().slices) samples.insert(slice.sample);
  EXPECT_EQ(samples, (std::set<int>{1, 2}));
  EXPECT_EQ(scheduler.stats().prompt_tokens, 9);
  EXPECT_EQ(scheduler.num_waiting(), 1);
}

TEST(Scheduler, TheYoungestGivesWayAndComesBack) {
  // Two samples of 3 pages each at their end; there are 4.
  Scheduler scheduler({.num_pages = 4, .page_size = 4, .max_running = 2, .max_step_tokens = 64});
  scheduler.Add(0, 4, 9, 1);
  scheduler.Add(1, 4, 9, 1);
  EXPECT_FALSE(scheduler.Fits(4, 14));
  EXPECT_TRUE(scheduler.Fits(4, 13));
  std::map<int64_t, int64_t> drawn;
  bool waited = false;
  while (drawn[0] < 9) {
    const Step step = scheduler.Schedule();
    ASSERT_FALSE(step.slices.empty());
    EXPECT_EQ(step.slices[0].group, 0) << "the oldest is never left out";
    for (const Scheduler::Draw& draw : step.draws) drawn[draw.group] = draw.index + 1;
    CollectAll(step, &scheduler);
    waited = waited || scheduler.num_waiting() == 1;
  }
  EXPECT_TRUE(waited);
  EXPECT_EQ(scheduler.stats().preemptions, 1);
  scheduler.Finish(0, 0);
  const int64_t before = drawn[1];
  const Step step = scheduler.Schedule();
  ASSERT_EQ(step.slices.size(), 1u);
  EXPECT_EQ(step.slices[0].first, 4) << "the prompt is still there";
  EXPECT_EQ(step.slices[0].count, before);
  EXPECT_EQ(step.draws[0].index, before);
  EXPECT_EQ(scheduler.stats().recomputed_tokens, before - 1);
}

TEST(Scheduler, AdmissionLeavesRoomToGrow) {
  // Each sample is of 4 pages at its end, 1 at its beginning. Not all 8 that would fit are let in.
  Scheduler scheduler({.num_pages = 8, .page_size = 4, .max_running = 8, .max_step_tokens = 64});
  for (int64_t group = 0; group < 8; ++group) scheduler.Add(group, 3, 14, 1);
  CollectAll(scheduler.Schedule(), &scheduler);
  EXPECT_GT(scheduler.num_running(), 2);
  EXPECT_LT(scheduler.num_running(), 6);
}

// A cache and samples' tokens as plain records, against which each step is checked.
class Checker {
 public:
  Checker(uint64_t seed, int in_flight) : random_(seed), in_flight_(in_flight) {
    options_.page_size = 1 + static_cast<int>(random_.Below(6));
    options_.num_pages = 8 + static_cast<int>(random_.Below(60));
    options_.max_running = 1 + static_cast<int>(random_.Below(12));
    options_.max_step_tokens = options_.max_running + static_cast<int>(random_.Below(30));
    scheduler_ = std::make_unique<Scheduler>(options_);
    content_.assign(options_.num_pages, std::vector<Place>(options_.page_size));
    in_slot_.resize(options_.max_running);
  }

  // Returns how many operations there were.
  int64_t Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
      if (groups_.size() < 20 && random_.Below(3) == 0) Add();
      if (!groups_.empty() && random_.Below(40) == 0) Cancel();
      Next();
    }
    // Nobody starves: what is left ends without new arrivals.
    for (int i = 0; !groups_.empty() && !testing::Test::HasFatalFailure(); ++i) {
      Next();
      EXPECT_LT(i, 100000) << "a sample never ends";
      if (i >= 100000) break;
    }
    while (!flights_.empty()) Land();
    EXPECT_EQ(scheduler_->pool().num_free(), options_.num_pages);
    return operations_;
  }

  const Scheduler::Stats& stats() const { return scheduler_->stats(); }

 private:
  using Place = std::tuple<int64_t, int, int64_t>;  // group, sample (-1: prompt), position
  struct Group {
    int64_t prompt = 0, max_tokens = 0;
    std::vector<int64_t> drawn, collected;  // of each sample; -1 in collected: ended
    int left = 0;
  };
  struct Flight {
    Step step;
    std::vector<std::vector<int32_t>> pages;  // of the slices
  };

  void Add() {
    Group group;
    const int64_t positions = int64_t{options_.num_pages} * options_.page_size;
    group.prompt = 1 + static_cast<int64_t>(random_.Below(std::min<int64_t>(positions, 30)));
    const int64_t most = std::min<int64_t>(positions - group.prompt + 1, 40);
    group.max_tokens = 1 + static_cast<int64_t>(random_.Below(most));
    group.left = 1 + static_cast<int>(random_.Below(8));
    group.drawn.resize(group.left);
    group.collected.resize(group.left);
    scheduler_->Add(next_group_, group.prompt, group.max_tokens, group.left);
    prompts_[next_group_] = group.prompt;
    groups_[next_group_++] = group;
    ++operations_;
  }

  void End(int64_t number, int sample) {
    Group& group = groups_.at(number);
    scheduler_->Finish(number, sample);
    group.collected[sample] = -1;
    if (--group.left == 0) groups_.erase(number);
    ++operations_;
  }

  void Cancel() {
    const auto it = std::next(groups_.begin(), static_cast<int>(random_.Below(groups_.size())));
    const int64_t number = it->first;
    const size_t samples = it->second.collected.size();
    for (size_t k = 0; k < samples && groups_.count(number) > 0; ++k) {
      if (groups_.at(number).collected[k] >= 0) End(number, static_cast<int>(k));
    }
  }

  void Next() {
    Flight flight = {scheduler_->Schedule(), {}};
    ++operations_;
    const bool idle = flight.step.slices.empty();
    if (idle) {
      ASSERT_TRUE(!flights_.empty() || groups_.empty()) << "nothing goes on";
    } else {
      CheckStep(flight.step);
      for (const Scheduler::Slice& slice : flight.step.slices) {
        flight.pages.emplace_back(slice.pages.begin(), slice.pages.end());
      }
      flights_.push_back(std::move(flight));
    }
    CheckHolders();
    if (!flights_.empty() && (idle || static_cast<int>(flights_.size()) >= in_flight_)) Land();
  }

  // What must hold when a step is made.
  void CheckStep(const Step& step) {
    std::set<int32_t> from, to;
    for (const PageCopy& copy : step.copies) {
      from.insert(copy.from);
      ASSERT_TRUE(to.insert(copy.to).second);
    }
    for (int32_t page : to) ASSERT_EQ(from.count(page), 0u);
    int64_t tokens = 0;
    size_t draw = 0;
    for (const Scheduler::Slice& slice : step.slices) {
      Group& group = groups_.at(slice.group);
      tokens += slice.count;
      if (slice.sample >= 0) {
        const int64_t last = slice.first + slice.count - 1 - group.prompt;
        ASSERT_GE(group.collected[slice.sample], 0) << "has ended";
        if (last >= group.collected[slice.sample]) {  // not known: it must be in the slot
          ASSERT_EQ(slice.count, 1);
          ASSERT_EQ(in_slot_[slice.slot], Place(slice.group, slice.sample, last));
        }
      }
      for (int k = 0; k < slice.draws; ++k, ++draw) {
        const Scheduler::Draw& d = step.draws.at(draw);
        ASSERT_EQ(d.group, slice.group);
        ASSERT_EQ(d.index, group.drawn[d.sample]++);
        ASSERT_LT(d.index, group.max_tokens);
        ASSERT_EQ(d.index, slice.first + slice.count - group.prompt);
        ASSERT_TRUE(slice.sample == -1 || slice.sample == d.sample);
        if (d.slot >= 0) in_slot_[d.slot] = {d.group, d.sample, d.index};
      }
    }
    ASSERT_EQ(draw, step.draws.size());
    ASSERT_LE(tokens, options_.max_step_tokens);
  }

  void CheckHolders() {
    const std::vector<int> holders = scheduler_->CountHolders();
    for (int page = 0; page < options_.num_pages; ++page) {
      ASSERT_EQ(scheduler_->pool().holders(page), holders[page]) << page;
    }
  }

  Place& At(const std::vector<int32_t>& pages, int64_t position) {
    return content_[pages.at(position / options_.page_size)][position % options_.page_size];
  }

  // Runs the oldest step on the record of the cache, as a runner does that goes layer by layer:
  // copies at once, then all writes, then all reads. What earlier steps wrote must be there before.
  void Land() {
    const Flight flight = std::move(flights_.front());
    flights_.pop_front();
    const auto before = content_;
    for (const PageCopy& copy : flight.step.copies) content_[copy.to] = before[copy.from];
    for (const bool written : {false, true}) {
      for (size_t i = 0; i < flight.step.slices.size(); ++i) {
        const Scheduler::Slice& slice = flight.step.slices[i];
        const int64_t prompt = prompts_.at(slice.group);
        const int64_t end = written ? slice.first + slice.count : slice.first;
        for (int64_t p = 0; p < end; ++p) {
          const Place expected(slice.group, p < prompt ? -1 : slice.sample, p);
          ASSERT_EQ(At(flight.pages[i], p), expected) << "read";
        }
      }
      if (written) break;
      for (size_t i = 0; i < flight.step.slices.size(); ++i) {
        const Scheduler::Slice& slice = flight.step.slices[i];
        for (int64_t p = slice.first; p < slice.first + slice.count; ++p) {
          At(flight.pages[i], p) = {slice.group, slice.sample, p};
        }
      }
    }
    for (const Scheduler::Draw& draw : flight.step.draws) Collect(draw);
  }

  void Collect(const Scheduler::Draw& draw) {
    ++operations_;
    scheduler_->Collected(draw);
    const auto it = groups_.find(draw.group);
    if (it == groups_.end() || it->second.collected[draw.sample] < 0) return;
    ASSERT_EQ(it->second.collected[draw.sample]++, draw.index);
    if (draw.index + 1 == it->second.max_tokens || random_.Below(25) == 0) {
      End(draw.group, draw.sample);
    }
  }

  Philox random_;
  const int in_flight_;
  Scheduler::Options options_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::vector<Place>> content_;
  std::vector<Place> in_slot_;
  std::map<int64_t, Group> groups_;
  std::map<int64_t, int64_t> prompts_;  // lengths, also of groups that have ended
  std::deque<Flight> flights_;
  int64_t next_group_ = 0;
  int64_t operations_ = 0;
};

TEST(Scheduler, RandomOperationsKeepItsPromises) {
  int64_t operations = 0;
  Scheduler::Stats total;
  for (uint64_t seed = 0; operations < 800000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Checker checker(seed, 1 + static_cast<int>(seed % 3));
    operations += checker.Run(1000);
    if (testing::Test::HasFailure()) return;
    total.preemptions += checker.stats().preemptions;
    total.recomputed_tokens += checker.stats().recomputed_tokens;
    total.shared_tokens += checker.stats().shared_tokens;
  }
  EXPECT_GT(total.preemptions, 1000);
  EXPECT_GT(total.recomputed_tokens, 10000);
  EXPECT_GT(total.shared_tokens, 100000);
}

}  // namespace
}  // namespace tritonrl
