#include "rollout/scheduler/page_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"

namespace tritonrl {

namespace {

TEST(BlockPool, GivesEachPageOnceAndTheOneFreedLastFirst) {
  BlockPool pool(3);
  EXPECT_EQ(pool.Allocate(), 0);
  EXPECT_EQ(pool.Allocate(), 1);
  EXPECT_EQ(pool.Allocate(), 2);
  EXPECT_EQ(pool.num_free(), 0);
  pool.Release(2);
  pool.Release(0);
  EXPECT_EQ(pool.Allocate(), 0);
  EXPECT_EQ(pool.peak(), 3);
}

TEST(BlockPool, TheLastHolderFreesAPage) {
  BlockPool pool(1);
  const int32_t page = pool.Allocate();
  pool.AddRef(page);
  pool.Release(page);
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.ref_count(page), 1);
  pool.Release(page);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockPoolDeathTest, MistakesEndTheProgram) {
  BlockPool pool(1);
  EXPECT_DEATH(pool.Release(0), "the page is free");
  EXPECT_DEATH(pool.AddRef(0), "the page is free");
  pool.Allocate();
  EXPECT_DEATH(pool.Allocate(), "no page is free");
}

// Compares the pool with a plain list of references.
TEST(BlockPool, RandomOperationsKeepTheCounts) {
  Philox random(3);
  for (int round = 0; round < 20; ++round) {
    const int pages = 1 + static_cast<int>(random.Below(40));
    BlockPool pool(pages);
    std::vector<int32_t> holds;  // one entry per reference
    size_t peak = 0;
    for (int operation = 0; operation < 10000; ++operation) {
      const uint64_t kind = random.Below(5);
      const std::set<int32_t> used(holds.begin(), holds.end());
      if (kind < 2 && pool.num_free() > 0) {
        const int32_t page = pool.Allocate();
        ASSERT_TRUE(page >= 0 && page < pages && used.count(page) == 0);
        holds.push_back(page);
      } else if (kind == 2 && !holds.empty()) {
        holds.push_back(holds[random.Below(holds.size())]);
        pool.AddRef(holds.back());
      } else if (!holds.empty()) {
        std::swap(holds[random.Below(holds.size())], holds.back());
        pool.Release(holds.back());
        holds.pop_back();
      }
      const std::set<int32_t> now(holds.begin(), holds.end());
      peak = std::max(peak, now.size());
      ASSERT_EQ(pool.num_free(), pages - static_cast<int>(now.size()));
      ASSERT_EQ(pool.peak(), static_cast<int>(peak));
      if (!holds.empty()) {
        const int32_t page = holds[random.Below(holds.size())];
        ASSERT_EQ(pool.ref_count(page), std::count(holds.begin(), holds.end(), page));
      }
    }
  }
}

}  // namespace

namespace {

using Tokens = std::vector<int32_t>;
using Pages = std::vector<int32_t>;

struct Sequence {
  Tokens tokens;
  Pages pages;
};

Pages Take(int count, BlockPool* pool) {
  Pages pages;
  for (int i = 0; i < count; ++i) pages.push_back(pool->Allocate());
  return pages;
}

void ReleaseAll(const Pages& pages, BlockPool* pool) {
  for (const int32_t page : pages) pool->Release(page);
}

TEST(PrefixCache, FindsTheLongestBeginningInWholePages) {
  BlockPool pool(10);
  PrefixCache cache(2, &pool);
  const Pages pages = Take(3, &pool);
  cache.Insert(Tokens{1, 2, 3, 4, 5}, pages);
  EXPECT_EQ(cache.size(), 2) << "the third page is not full";
  EXPECT_EQ(cache.Find(Tokens{1, 2, 3, 4, 5, 6}), (Pages{pages[0], pages[1]}));
  EXPECT_EQ(cache.Find(Tokens{1, 2, 3}), Pages{pages[0]});
  EXPECT_EQ(cache.Find(Tokens{1, 2, 9, 4}), Pages{pages[0]});
  EXPECT_TRUE(cache.Find(Tokens{3, 4}).empty()) << "the same tokens elsewhere are other keys";
  EXPECT_TRUE(cache.Find(Tokens{1}).empty());
}

TEST(PrefixCache, WhatIsKnownStays) {
  BlockPool pool(10);
  PrefixCache cache(2, &pool);
  const Pages first = Take(1, &pool), second = Take(2, &pool);
  cache.Insert(Tokens{1, 2}, first);
  cache.Insert(Tokens{1, 2, 3, 4}, second);
  EXPECT_EQ(cache.Find(Tokens{1, 2, 3, 4}), (Pages{first[0], second[1]}));
  EXPECT_FALSE(pool.is_cached(second[0]));
}

TEST(PrefixCache, FreePagesAreFoundUntilTheyAreGivenOut) {
  BlockPool pool(4);
  PrefixCache cache(2, &pool);
  const Pages old = Take(2, &pool), young = Take(1, &pool);
  cache.Insert(Tokens{1, 2, 3, 4}, old);
  cache.Insert(Tokens{7, 8}, young);
  ReleaseAll({old[1], old[0]}, &pool);
  ReleaseAll(young, &pool);
  EXPECT_EQ(pool.num_free(), 4);
  EXPECT_EQ(pool.Allocate(), 3) << "first what nobody may want again";
  EXPECT_EQ(cache.Find(Tokens{1, 2, 3, 4}), old);
  EXPECT_EQ(pool.Allocate(), old[1]) << "then what was freed first";
  EXPECT_EQ(cache.Find(Tokens{1, 2, 3, 4}), Pages{old[0]});
  pool.AddRef(old[0]);
  EXPECT_EQ(pool.Allocate(), young[0]);
  EXPECT_TRUE(cache.Find(Tokens{7, 8}).empty());
  EXPECT_EQ(pool.num_free(), 0);
  cache.Clear();
  EXPECT_TRUE(cache.Find(Tokens{1, 2}).empty());
  EXPECT_EQ(pool.num_free(), 0) << "somebody holds it";
}

TEST(PrefixCache, AChildOfALostPageIsNotFoundUnderItsSuccessor) {
  BlockPool pool(3);
  PrefixCache cache(1, &pool);
  const Pages pages = Take(2, &pool);
  cache.Insert(Tokens{1, 2}, pages);
  pool.Release(pages[0]);
  Take(2, &pool);  // the page that is not cached, then pages[0], which is evicted
  const Pages again = {pages[0]};
  cache.Insert(Tokens{1}, again);
  EXPECT_EQ(cache.Find(Tokens{1, 2}), again);
}

// Sequences over two tokens, so that prefixes recur; each page that is found must hold the right
// tokens.
TEST(PrefixCache, RandomSequencesNeverGetAnotherOnesPages) {
  Philox random(5);
  int64_t found = 0;
  for (int round = 0; round < 30; ++round) {
    constexpr int kPage = 2;
    BlockPool pool(40);
    PrefixCache cache(kPage, &pool);
    std::map<int32_t, Tokens> content;  // of each page: all tokens up to its end
    std::vector<Sequence> running;
    for (int operation = 0; operation < 2000; ++operation) {
      if (random.Below(200) == 0) {
        cache.Clear();
        ASSERT_EQ(cache.size(), 0);
      }
      if (random.Below(2) == 0 && !running.empty()) {
        std::swap(running[random.Below(running.size())], running.back());
        // As when a sample ends; its prefix may have been evicted meanwhile.
        cache.Insert(running.back().tokens, running.back().pages);
        ASSERT_LE(cache.size(), pool.num_pages());
        ReleaseAll(running.back().pages, &pool);
        running.pop_back();
        continue;
      }
      Tokens tokens(1 + random.Below(12));
      for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(2));
      Pages pages = cache.Find(tokens);
      for (size_t i = 0; i < pages.size(); ++i) {
        ASSERT_EQ(content.at(pages[i]), Tokens(tokens.begin(), tokens.begin() + kPage * (i + 1)));
        pool.AddRef(pages[i]);
      }
      found += static_cast<int64_t>(pages.size());
      const size_t wanted = (tokens.size() + kPage - 1) / kPage;
      if (pool.num_free() < static_cast<int>(wanted - pages.size())) {
        ReleaseAll(pages, &pool);
        continue;
      }
      while (pages.size() < wanted) {
        pages.push_back(pool.Allocate());
        const size_t end = std::min(tokens.size(), kPage * pages.size());
        content[pages.back()] = Tokens(tokens.begin(), tokens.begin() + static_cast<int64_t>(end));
      }
      cache.Insert(tokens, pages);
      running.push_back({tokens, pages});
    }
    for (const Sequence& sequence : running) ReleaseAll(sequence.pages, &pool);
    ASSERT_EQ(pool.num_free(), pool.num_pages());
    ASSERT_LE(cache.size(), pool.num_pages());
  }
  EXPECT_GT(found, 10000);
}

}  // namespace

}  // namespace tritonrl
