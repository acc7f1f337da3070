// Compares prefill attention over a paged cache with fp64, and checks its guarantees about bits.

#include <ATen/ops/cat.h>

#include <cmath>
#include <vector>

#include "rollout/cuda/testing/paged_cache_fixture.h"

namespace tritonrl {
namespace {

struct ChunkCase {
  int32_t rows, context;
};

class PagedChunkTest : public PagedCacheTest {
 protected:
  at::Tensor Run(const at::Tensor& queries, const std::vector<PrefillChunk>& chunks,
                 const PrefillDevice& on, bool batch_invariant = false) const {
    at::Tensor out = at::empty_like(queries).fill_(std::nan(""));
    const PrefillPlan plan = PlanPrefill(shape_, on, chunks, kSlots * kTablePages, batch_invariant);
    const at::Tensor words = Ints(plan.words);
    LaunchPrefillAttention(shape_, Cache(), plan, words.const_data_ptr<int32_t>(),
                           Rows(queries, out), stream());
    return out;
  }

  // Compares each chunk of a batch with fp64, and expects the same bits from the chunk alone.
  void Check(const std::vector<ChunkCase>& cases, const PrefillDevice& on) {
    std::vector<PrefillChunk> chunks;
    int32_t rows = 0;
    for (int i = 0; i < cases.size(); ++i) {
      const int32_t begin = (2 + 5 * i) % kSlots * kTablePages;
      chunks.push_back({rows, cases[i].rows, cases[i].rows + cases[i].context, begin});
      rows += cases[i].rows;
      ForgetFrom(static_cast<int>(begin / kTablePages), chunks.back().length);
    }
    const at::Tensor queries = Queries(rows, 8);
    const at::Tensor out = Run(queries, chunks, on);
    for (const PrefillChunk& chunk : chunks) {
      SCOPED_TRACE(testing::Message()
                   << chunk.rows << " rows of " << chunk.length << (on.hopper ? " (Hopper)" : ""));
      const at::Tensor own = out.slice(0, chunk.first_row, chunk.first_row + chunk.rows);
      const at::Tensor q = queries.slice(0, chunk.first_row, chunk.first_row + chunk.rows).clone();
      const int slot = static_cast<int>(chunk.page_begin / kTablePages);
      EXPECT_LT(Error(own, Reference(q, slot, chunk.length)), kTolerance);
      const at::Tensor alone = Run(q, {{0, chunk.rows, chunk.length, chunk.page_begin}}, on);
      EXPECT_TRUE(at::equal(alone, own)) << Error(alone, own.to(at::kDouble));
    }
  }
};

TEST_P(PagedChunkTest, ChunksAreAsInFp64) {
  const std::vector<ChunkCase> cases = {{1, 0},   {17, 0},    {5, 100},   {127, 0},  {128, 37},
                                        {200, 1}, {300, 999}, {1500, 16}, {2, 4000}, {129, 4800}};
  for (const CacheHeads& shape :
       {CacheHeads{32, 8, 128}, CacheHeads{10, 2, 128}, CacheHeads{8, 4, 64},
        CacheHeads{32, 8, 128, CacheType::kE4M3}, CacheHeads{8, 4, 64, CacheType::kE4M3}}) {
    SCOPED_TRACE(testing::Message() << Name(shape));
    MakeCache(shape);
    const PrefillDevice own = CurrentPrefillDevice();
    Check(cases, own);
    if (own.hopper) Check(cases, {false, own.multiprocessors});
  }
}

// A prompt of 1,500 tokens in one chunk, and in several chunks, each beside another sequence's
// chunk.
TEST_P(PagedChunkTest, BatchInvariantChunksHaveTheSameBitsHoweverAPromptIsCut) {
  const int32_t length = 1500, begin = 3 * kTablePages, other = 9 * kTablePages;
  for (const CacheHeads& shape :
       {CacheHeads{32, 8, 128}, CacheHeads{10, 2, 128}, CacheHeads{8, 4, 64},
        CacheHeads{32, 8, 128, CacheType::kE4M3}, CacheHeads{8, 4, 64, CacheType::kE4M3}}) {
    SCOPED_TRACE(testing::Message() << Name(shape));
    MakeCache(shape);
    const at::Tensor queries = Queries(length, 4), others = Queries(40, 5);
    const at::Tensor whole =
        Run(queries, {{0, length, length, begin}}, CurrentPrefillDevice(), true);
    EXPECT_LT(Error(whole, Reference(queries, 3, length)), kTolerance);
    for (const std::vector<int32_t>& cuts : std::vector<std::vector<int32_t>>{
             {128}, {256, 384, 512}, {1408}, {128, 640, 1024}, {384, 1280}}) {
      for (size_t i = 0; i <= cuts.size(); ++i) {
        const int32_t first = i == 0 ? 0 : cuts[i - 1], end = i < cuts.size() ? cuts[i] : length;
        const at::Tensor own = queries.slice(0, first, end);
        const at::Tensor out =
            Run(at::cat({others, own}), {{0, 40, 1200, other}, {40, end - first, end, begin}},
                CurrentPrefillDevice(), true);
        const at::Tensor differs =
            (out.slice(0, 40) != whole.slice(0, first, end)).flatten(1).any(1).nonzero().cpu();
        EXPECT_EQ(differs.size(0), 0)
            << "[" << first << ", " << end << "): rows from " << differs[0].item<int64_t>()
            << " to " << differs[-1].item<int64_t>();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, PagedChunkTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
