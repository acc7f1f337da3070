// The scheduler under random arrivals, ends and cancellations.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "rollout/scheduler/scheduler.h"

namespace tritonrl {
namespace {

using Step = Scheduler::Step;

// Checks each step against plain records of the cache's contents and of the samples' tokens.
class Checker {
 public:
  // reserve: Options::reserve_max_tokens.
  Checker(uint64_t seed, int in_flight, bool reserve = false)
      : random_(seed), in_flight_(in_flight) {
    options_.reserve_max_tokens = reserve;
    options_.page_size = 1 + static_cast<int>(random_.Below(6));
    options_.num_pages = 8 + static_cast<int>(random_.Below(60));
    options_.max_num_seqs = 1 + static_cast<int>(random_.Below(12));
    if (reserve) {
      options_.chunk_alignment = options_.page_size * (1 + static_cast<int>(random_.Below(3)));
    }
    options_.max_num_batched_tokens = options_.max_num_seqs +
                                      (reserve ? options_.chunk_alignment : 0) +
                                      static_cast<int>(random_.Below(30));
    options_.prefill_budget = static_cast<int>(random_.Below(3) * random_.Below(20));
    scheduler_ = std::make_unique<Scheduler>(options_);
    content_.assign(options_.num_pages, std::vector<TokenPosition>(options_.page_size));
    in_slot_.resize(options_.max_num_seqs);
  }

  // Returns the number of operations.
  int64_t Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
      if (groups_.size() < 20 && random_.Below(3) == 0) Add();
      if (!groups_.empty() && random_.Below(40) == 0) Cancel();
      if (!options_.reserve_max_tokens && random_.Below(60) == 0) Invalidate();
      Next();
    }
    // No sample starves: without new arrivals all remaining samples end.
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
  int64_t accepted_tokens() const { return accepted_tokens_; }

 private:
  using TokenPosition = std::tuple<int64_t, int, int64_t>;  // group, sample (-1: prompt), position
  struct Group {
    int64_t prompt = 0, max_tokens = 0;
    // Number of tokens of each sample; collected is -1 once the sample has ended.
    std::vector<int64_t> drawn, collected;
    int left = 0;
  };
  struct Flight {
    Step step;
    std::vector<std::vector<int32_t>> pages;  // of each slice of the step
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

  // As in a weight update: no entry computed before may be read again.
  void Invalidate() {
    while (!flights_.empty()) Land();
    scheduler_->Invalidate();
    for (std::vector<TokenPosition>& page : content_) {
      page.assign(options_.page_size, TokenPosition(-1, -1, -1));
    }
    EXPECT_EQ(scheduler_->pool().num_free(), options_.num_pages);
    ++operations_;
  }

  // Allows draft tokens for some samples, running or not.
  void Draft() {
    for (const auto& [number, group] : groups_) {
      for (int k = 0; k < static_cast<int>(group.collected.size()); ++k) {
        if (group.collected[k] < 0 || random_.Below(3) != 0) continue;
        scheduler_->SetDraftTokens(number, k, static_cast<int>(random_.Below(7)));
        ++operations_;
      }
    }
  }

  void Next() {
    if (random_.Below(3) == 0) Draft();
    Flight flight = {scheduler_->Schedule(), {}};
    ++operations_;
    const bool idle = flight.step.slices.empty();
    if (idle) {
      ASSERT_TRUE(!flights_.empty() || groups_.empty()) << "nothing goes on";
    } else {
      CheckStep(flight.step);
      for (const Scheduler::ScheduledSlice& scheduled : flight.step.slices) {
        const std::span<const int32_t> pages = scheduled.slice.pages;
        flight.pages.emplace_back(pages.begin(), pages.end());
      }
      flights_.push_back(std::move(flight));
    }
    CheckHolders();
    if (!flights_.empty() && (idle || static_cast<int>(flights_.size()) >= in_flight_)) Land();
  }

  // Checks the properties that every new step must have.
  void CheckStep(const Step& step) {
    std::set<int32_t> from, to;
    for (const PageCopy& copy : step.copies) {
      from.insert(copy.from);
      ASSERT_TRUE(to.insert(copy.to).second);
    }
    for (int32_t page : to) ASSERT_EQ(from.count(page), 0u);
    int64_t tokens = 0, logits = 0;
    size_t draw = 0;
    for (const auto& [number, sample, slice] : step.slices) {
      Group& group = groups_.at(number);
      tokens += slice.count;
      if (sample < 0) {
        const int64_t end = slice.first + slice.count;
        ASSERT_EQ(slice.first % options_.chunk_alignment, 0);
        ASSERT_TRUE(end == group.prompt || end % options_.chunk_alignment == 0) << end;
      }
      if (sample >= 0) {
        const int64_t last = slice.first + slice.count - slice.num_draft_tokens - 1 - group.prompt;
        ASSERT_GE(group.collected[sample], 0) << "has ended";
        ASSERT_TRUE(!options_.reserve_max_tokens || slice.count == 1 + slice.num_draft_tokens)
            << "decoded before";
        // A token that is in flight must be in its batch slot.
        if (last >= group.collected[sample]) {
          ASSERT_EQ(slice.count, 1);
          ASSERT_EQ(slice.num_draft_tokens, 0);
          ASSERT_EQ(in_slot_[slice.slot], TokenPosition(number, sample, last));
        }
      }
      logits += slice.num_draft_tokens > 0 ? slice.draws : 1;
      ASSERT_TRUE(slice.num_draft_tokens == 0 ||
                  (slice.draws == slice.num_draft_tokens + 1 && slice.count == slice.draws));
      for (int k = 0; k < slice.draws; ++k, ++draw) {
        const Scheduler::Draw& d = step.draws.at(draw);
        ASSERT_EQ(d.group, number);
        ASSERT_EQ(d.index, group.drawn[d.sample]++);
        ASSERT_LT(d.index, group.max_tokens);
        const int after = slice.num_draft_tokens > 0 ? slice.draws - 1 - k : 0;
        ASSERT_EQ(d.index, slice.first + slice.count - after - group.prompt);
        ASSERT_EQ(d.num_draft_tokens, k == 0 ? slice.num_draft_tokens : 0);
        ASSERT_TRUE(sample == -1 || sample == d.sample);
        if (d.slot >= 0) in_slot_[d.slot] = {d.group, d.sample, d.index};
      }
    }
    ASSERT_EQ(draw, step.draws.size());
    ASSERT_LE(tokens, options_.max_num_batched_tokens);
    ASSERT_LE(logits, options_.max_num_seqs);
  }

  void CheckHolders() {
    const std::vector<int> holders = scheduler_->CountRefs();
    for (int page = 0; page < options_.num_pages; ++page) {
      ASSERT_EQ(scheduler_->pool().ref_count(page), holders[page]) << page;
    }
  }

  TokenPosition& At(const std::vector<int32_t>& pages, int64_t position) {
    return content_[pages.at(position / options_.page_size)][position % options_.page_size];
  }

  // Runs the oldest step on the record of the cache, in the order of a runner that computes layer
  // by layer: all copies, then all writes, then all reads. Entries of earlier steps must be present
  // before the writes.
  void Land() {
    const Flight flight = std::move(flights_.front());
    flights_.pop_front();
    const auto before = content_;
    for (const PageCopy& copy : flight.step.copies) content_[copy.to] = before[copy.from];
    for (const bool written : {false, true}) {
      for (size_t i = 0; i < flight.step.slices.size(); ++i) {
        const auto& [number, sample, slice] = flight.step.slices[i];
        const int64_t prompt = prompts_.at(number);
        const int64_t end = written ? slice.first + slice.count : slice.first;
        for (int64_t p = 0; p < end; ++p) {
          const TokenPosition expected(number, p < prompt ? -1 : sample, p);
          ASSERT_EQ(At(flight.pages[i], p), expected) << "read";
        }
      }
      if (written) break;
      for (size_t i = 0; i < flight.step.slices.size(); ++i) {
        const auto& [number, sample, slice] = flight.step.slices[i];
        for (int64_t p = slice.first; p < slice.first + slice.count; ++p) {
          At(flight.pages[i], p) = {number, sample, p};
        }
      }
    }
    for (size_t i = 0; i < flight.step.draws.size(); ++i) {
      const Scheduler::Draw& draw = flight.step.draws[i];
      Collect(draw);
      i += draw.num_draft_tokens;
    }
  }

  // Accepts a random number of the draft tokens; each token may be the sample's last.
  void CollectDraftTokens(const Scheduler::Draw& draw) {
    Group& group = groups_.at(draw.group);
    const int held = 1 + static_cast<int>(random_.Below(draw.num_draft_tokens + 1));
    for (int k = 0; k < held; ++k) {
      ASSERT_EQ(group.collected[draw.sample]++, draw.index + k);
      if (draw.index + k + 1 == group.max_tokens || random_.Below(25) == 0) {
        return End(draw.group, draw.sample);
      }
    }
    group.drawn[draw.sample] -= draw.num_draft_tokens + 1 - held;
    scheduler_->AcceptDraftTokens(draw, held);
    accepted_tokens_ += held - 1;
  }

  void Collect(const Scheduler::Draw& draw) {
    ++operations_;
    if (draw.num_draft_tokens == 0) scheduler_->UpdateFromDraw(draw);
    const auto it = groups_.find(draw.group);
    if (it == groups_.end() || it->second.collected[draw.sample] < 0) return;
    if (draw.num_draft_tokens > 0) return CollectDraftTokens(draw);
    ASSERT_EQ(it->second.collected[draw.sample]++, draw.index);
    if (draw.index + 1 == it->second.max_tokens || random_.Below(25) == 0) {
      End(draw.group, draw.sample);
    }
  }

  Philox random_;
  const int in_flight_;
  Scheduler::Options options_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::vector<TokenPosition>> content_;
  std::vector<TokenPosition> in_slot_;
  std::map<int64_t, Group> groups_;
  std::map<int64_t, int64_t> prompts_;  // lengths, also of groups that have ended
  std::deque<Flight> flights_;
  int64_t next_group_ = 0;
  int64_t operations_ = 0;
  int64_t accepted_tokens_ = 0;
};

TEST(Scheduler, RandomOperationsKeepItsPromises) {
  int64_t operations = 0, accepted_tokens = 0;
  Scheduler::Stats total;
  for (uint64_t seed = 0; operations < 1000000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Checker checker(seed, 1 + static_cast<int>(seed % 3));
    operations += checker.Run(1000);
    if (testing::Test::HasFailure()) return;
    total.preemptions += checker.stats().preemptions;
    total.recomputed_tokens += checker.stats().recomputed_tokens;
    total.shared_tokens += checker.stats().shared_tokens;
    total.draft_tokens += checker.stats().draft_tokens;
    accepted_tokens += checker.accepted_tokens();
  }
  EXPECT_GT(total.draft_tokens, 3000);
  EXPECT_GT(accepted_tokens, 500);
  EXPECT_GT(total.preemptions, 1000);
  EXPECT_GT(total.recomputed_tokens, 10000);
  EXPECT_GT(total.shared_tokens, 100000);
}

// As above with reserve_max_tokens: no sample is recomputed, although memory is too small for all.
TEST(Scheduler, RandomOperationsOnWholeSamples) {
  int64_t operations = 0, accepted_tokens = 0;
  Scheduler::Stats total;
  for (uint64_t seed = 0; operations < 1000000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Checker checker(seed, 1 + static_cast<int>(seed % 3), /*reserve=*/true);
    operations += checker.Run(1000);
    ASSERT_EQ(checker.stats().preemptions, 0);
    if (testing::Test::HasFailure()) return;
    total.recomputed_tokens += checker.stats().recomputed_tokens;
    total.shared_tokens += checker.stats().shared_tokens;
    accepted_tokens += checker.accepted_tokens();
  }
  EXPECT_GT(total.recomputed_tokens, 100) << "prompts are recomputed";
  EXPECT_GT(total.shared_tokens, 50000);
  EXPECT_GT(accepted_tokens, 250);
}

}  // namespace
}  // namespace tritonrl
