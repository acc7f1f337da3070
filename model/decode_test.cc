// Tests that steps with a KV cache give the results of a whole forward pass.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/paged_cache.h"
#include "model/testing/test_util.h"
#include "model/transformer.h"

namespace tritonrl {
namespace {

enum class Path { kKernels, kAten };

using Pages = std::vector<int32_t>;

class DecodeTest : public testing::TestWithParam<Path> {
 protected:
  DecodeTest()
      : config_(SmallConfig(ModelFamily::kQwen3, GetParam() == Path::kKernels)),
        weights_(SmallWeights(config_, 1)),
        model_(Model(2)) {}

  std::unique_ptr<Transformer> Model(int threads) const {
    Transformer::Options options;
    options.cpu_threads = threads;
    options.force_aten = GetParam() == Path::kAten;
    return std::make_unique<Transformer>(config_, weights_, options);
  }

  PagedKvCache Cache(int64_t pages) const {
    return PagedKvCache(config_, pages, at::kCPU, at::kFloat);
  }

  // The kernels give the same bits; an ATen GEMM may round differently for another number of rows.
  void ExpectEqual(const at::Tensor& actual, const at::Tensor& expected) const {
    if (GetParam() == Path::kKernels) {
      EXPECT_TRUE(SameBits(actual, expected)) << MaxDifference(actual, expected);
    } else {
      EXPECT_LT(MaxDifference(actual, expected), 1e-5);
    }
  }

  // Returns the logits after the last token of each chunk, [chunks, V]; the chunks cycle through
  // `sizes`.
  at::Tensor InChunks(const Transformer& model, const std::vector<int32_t>& tokens,
                      const std::vector<int64_t>& sizes, const Pages& pages,
                      PagedKvCache* cache) const {
    std::vector<at::Tensor> logits;
    const int64_t length = static_cast<int64_t>(tokens.size());
    for (int64_t first = 0, i = 0; first < length; ++i) {
      const int64_t count = std::min(length - first, sizes[i % sizes.size()]);
      logits.push_back(
          model.Step({SliceOf(std::span(tokens).subspan(first, count), first,
                              std::span(pages).first(PagedKvCache::NumPages(first + count)))},
                     cache));
      first += count;
    }
    return at::cat(logits);
  }

  const ModelConfig config_;
  const std::shared_ptr<Weights> weights_;
  const std::unique_ptr<Transformer> model_;
};

// Sequences of different lengths start and end at different times. Their prompts run in chunks
// beside the tokens of other sequences, on pages that ended sequences have freed.
TEST_P(DecodeTest, ContinuousBatchingAgreesWithForward) {
  const std::vector<int64_t> lengths = {60, 33, 71, 20, 48, 52};
  const std::vector<int64_t> prompt_lengths = {17, 1, 40, 5, 16, 30};
  const auto sequences = RandomTokens(config_, lengths, 3);
  const PackedBatch whole = PackSequences(sequences);
  const at::Tensor expected =
      model_->Forward(whole, NextTokenTargets(whole), 0.7, nullptr).log_probs;
  PagedKvCache cache = Cache(14);

  struct Running {
    size_t sequence = 0;
    int64_t computed = 0;
    Pages pages;
  };
  std::vector<Running> running;
  Pages free_pages = {2, 0, 3, 1, 9, 4, 13, 5, 8, 6, 12, 7, 11, 10};
  size_t waiting = 0;
  double largest = 0;
  int64_t compared = 0;
  while (waiting < sequences.size() || !running.empty()) {
    while (waiting < sequences.size() && running.size() < 3) {
      running.push_back({waiting, 0, {}});
      for (int64_t i = 0; i < PagedKvCache::NumPages(lengths[waiting]); ++i) {
        ASSERT_FALSE(free_pages.empty());
        running.back().pages.push_back(free_pages.front());
        free_pages.erase(free_pages.begin());
      }
      ++waiting;
    }
    std::vector<SequenceSlice> slices;
    for (const Running& r : running) {
      const int64_t left = prompt_lengths[r.sequence] - r.computed;
      const int64_t count = std::clamp<int64_t>(left, 1, 12);
      slices.push_back(SliceOf(std::span(sequences[r.sequence]).subspan(r.computed, count),
                               r.computed, r.pages, count >= left ? 1 : 0));
    }
    const at::Tensor logits = model_->Step(slices, &cache);
    std::vector<Running> still;
    int64_t row = 0;
    for (size_t i = 0; i < running.size(); ++i) {
      Running r = running[i];
      r.computed += static_cast<int64_t>(slices[i].tokens.size());
      if (slices[i].logit_rows() > 0 && r.computed < lengths[r.sequence]) {
        const int32_t next = sequences[r.sequence][r.computed];
        const double actual = (logits.select(0, row) / 0.7).log_softmax(-1).data_ptr<float>()[next];
        const int64_t place = whole.offsets[r.sequence] + r.computed - 1;
        largest = std::max(largest, std::fabs(actual - expected.data_ptr<float>()[place]));
        ++compared;
      }
      row += slices[i].logit_rows();
      if (r.computed < lengths[r.sequence]) {
        still.push_back(r);
      } else {
        free_pages.insert(free_pages.end(), r.pages.begin(), r.pages.end());
      }
    }
    ASSERT_EQ(row, logits.size(0));
    running = still;
  }
  EXPECT_EQ(compared, 60 + 33 + 71 + 20 + 48 + 52 - (17 + 1 + 40 + 5 + 16 + 30));
  EXPECT_LT(largest, 1e-5);
}

TEST_P(DecodeTest, ChunksPagesAndThreadsChangeNothing) {
  const auto tokens = RandomTokens(config_, {120}, 5)[0];
  const Pages in_order = {0, 1, 2, 3, 4, 5, 6, 7}, turned = {13, 2, 11, 0, 7, 8, 1, 12};
  PagedKvCache cache = Cache(14);
  const at::Tensor expected = InChunks(*model_, tokens, {1}, in_order, &cache);  // [120, V]
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{120}, {7}, {32, 1, 50}, {16}}) {
    std::vector<at::Tensor> rows;
    for (int64_t end = 0, i = 0; end < 120; ++i) {
      end = std::min<int64_t>(120, end + sizes[i % sizes.size()]);
      rows.push_back(expected.narrow(0, end - 1, 1));
    }
    for (int threads : {1, 2, 5}) {
      ExpectEqual(InChunks(*Model(threads), tokens, sizes, turned, &cache), at::cat(rows));
    }
  }
}

// Draft tokens after a sequence's last token need the logits of several tokens.
TEST_P(DecodeTest, LogitsOfSeveralTokensAreThoseOfEachAlone) {
  const std::vector<int32_t> tokens = RandomTokens(config_, {40}, 6)[0];
  const Pages pages = {2, 0, 1};
  PagedKvCache one_by_one = Cache(3), at_once = Cache(3);
  const at::Tensor each = InChunks(*model_, tokens, {1}, pages, &one_by_one);
  model_->Step({SliceOf(std::span(tokens).first(30), 0, pages, 0)}, &at_once);
  const std::vector<int32_t> wrong = {tokens[30], 1, 2, 3, 4, 5, 6};
  model_->Step({SliceOf(wrong, 30, pages, 7)}, &at_once);  // the next step overwrites these tokens
  const at::Tensor last =
      model_->Step({SliceOf(std::span(tokens).subspan(31), 31, pages, 5)}, &at_once);
  ExpectEqual(last, each.narrow(0, 35, 5));
}

// Two samples of one prompt: they share its full pages and copy the last page.
TEST_P(DecodeTest, PagesInCommonAreReadByAll) {
  const auto prompt = RandomTokens(config_, {25}, 4)[0];
  PagedKvCache cache = Cache(6);
  InChunks(*model_, prompt, {25}, {3, 5}, &cache);
  cache.CopyPage(5, 0);
  cache.CopyPage(5, 2);
  const std::vector<int32_t> a = {11}, b = {12, 13};
  const Pages pages_a = {3, 0}, pages_b = {3, 2};
  const at::Tensor both = model_->Step({SliceOf(a, 25, pages_a), SliceOf(b, 25, pages_b)}, &cache);
  std::vector<int32_t> whole = prompt;
  whole.push_back(11);
  ExpectEqual(both.narrow(0, 0, 1), InChunks(*model_, whole, {26}, {1, 4}, &cache));
  whole.back() = 12;
  whole.push_back(13);
  ExpectEqual(both.narrow(0, 1, 1), InChunks(*model_, whole, {27}, {1, 4}, &cache));
}

TEST_P(DecodeTest, OtherRowsChangeNothing) {
  const int64_t batch = 53;
  const auto prompts = RandomTokens(config_, std::vector<int64_t>(batch, 20), 4);
  PagedKvCache cache = Cache(2 * batch);
  std::vector<Pages> pages;
  std::vector<std::vector<int32_t>> tokens;
  for (int32_t i = 0; i < batch; ++i) {
    pages.push_back({2 * i, 2 * i + 1});
    tokens.push_back({i});
  }
  std::vector<SequenceSlice> slices;
  for (int64_t i = 0; i < batch; ++i) slices.push_back(SliceOf(prompts[i], 0, pages[i], 0));
  EXPECT_EQ(model_->Step(slices, &cache).size(0), 0);
  for (int64_t i = 0; i < batch; ++i) slices[i] = SliceOf(tokens[i], 20, pages[i]);
  const at::Tensor all = model_->Step(slices, &cache);
  for (int64_t i : {0, 15, 16, 31, 52}) {
    ExpectEqual(model_->Step({slices[i]}, &cache), all.narrow(0, i, 1));
  }
}

TEST_P(DecodeTest, MistakesOfTheCallerAreRefused) {
  PagedKvCache cache = Cache(2);
  const std::vector<int32_t> tokens = {1, 2, 3, 4}, unknown = {101}, none = {};
  const Pages one = {0}, outside = {2}, many(1000, 1);
  EXPECT_ANY_THROW(model_->Step({}, &cache));
  EXPECT_ANY_THROW(model_->Step({SliceOf(none, 0, one)}, &cache));
  EXPECT_ANY_THROW(model_->Step({SliceOf(tokens, 13, one)}, &cache)) << "needs a second page";
  EXPECT_ANY_THROW(model_->Step({SliceOf(tokens, -1, one)}, &cache));
  EXPECT_ANY_THROW(model_->Step({SliceOf(tokens, 0, outside)}, &cache));
  EXPECT_ANY_THROW(model_->Step({SliceOf(unknown, 0, one)}, &cache));
  EXPECT_ANY_THROW(model_->Step({SliceOf(tokens, config_.max_positions - 3, many)}, &cache));
  EXPECT_ANY_THROW(model_->Step({SliceOf(tokens, 0, one, 5)}, &cache))
      << "logits of more than there are";
  EXPECT_ANY_THROW(cache.CopyPage(0, 2));
  EXPECT_NO_THROW(model_->Step({SliceOf(tokens, 12, one)}, &cache));
}

// Biases and YaRN are in the steps as in the whole forward pass.
TEST_P(DecodeTest, BiasesAndScaledRopeAreThoseOfForward) {
  ModelConfig config = SmallConfig(ModelFamily::kLlama, false);
  config.attention_bias = config.mlp_bias = true;
  config.rope_scaling = {
      .type = RopeType::kYarn, .factor = 4, .original_max_positions = 64, .attention_factor = 1.2};
  Transformer::Options options;
  options.cpu_threads = 2;
  options.force_aten = GetParam() == Path::kAten;
  const Transformer model(config, SmallWeights(config, 1), options);
  const auto sequences = RandomTokens(config, {70}, 3);
  PagedKvCache cache(config, 5, at::kCPU, at::kFloat);
  const Pages pages = {4, 0, 3, 1, 2};
  const at::Tensor steps = InChunks(model, sequences[0], {1}, pages, &cache);
  EXPECT_LT(MaxDifference(steps, model.Logits(PackSequences(sequences))), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Paths, DecodeTest, testing::Values(Path::kKernels, Path::kAten),
                         [](const auto& info) {
                           return std::string(info.param == Path::kKernels ? "Kernels" : "Aten");
                         });

}  // namespace
}  // namespace tritonrl
