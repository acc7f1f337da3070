#include "trainer/sft/sft_data.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "trainer/sft/test_tokens.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

class SftDataTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("sft_data");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomic(dir_ + "/" + name, text).ok());
    return dir_ + "/" + name;
  }
  std::unique_ptr<TokenCache> Tokens(const std::string& text) {
    if (policy_.tokenizer == nullptr) policy_ = LoadTinyPolicy(dir_ + "/model");
    auto tokens = TokensOf(policy_, {Write("data.jsonl", text)}, dir_ + "/data.tokens");
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    return *std::move(tokens);
  }
  // n examples; example i has the prompt "p<i>" and a response of i % 7 + 1 letters.
  std::unique_ptr<TokenCache> Numbered(int n) {
    std::string text;
    for (int i = 0; i < n; ++i) {
      text += absl::StrCat("{\"prompt\": \"p", i, "\", \"response\": \"",
                           std::string(i % 7 + 1, 'x'), "\"}\n");
    }
    return Tokens(text);
  }

  Policy policy_;
  std::string dir_;
};

TEST_F(SftDataTest, EveryEpochHoldsEveryExampleOnce) {
  const auto data = Numbered(30);
  for (const Batching batching : {SHUFFLED, LENGTH_BUCKETED}) {
    SftConfig config;
    config.set_batch_size(5);
    config.set_batching(batching);
    config.set_bucket_batches(3);
    config.set_seed(4);
    SftOrder order(data.get(), config);
    std::vector<int64_t> first, second;
    for (int step = 0; step < 12; ++step) {
      const std::vector<int64_t> batch = order.Batch(step);
      ASSERT_EQ(batch.size(), 5);
      (step < 6 ? first : second)
          .insert((step < 6 ? first : second).end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 30);
    EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 30);
    EXPECT_NE(first, second);
    // A new object gives the same batch for a step in the middle.
    SftOrder again(data.get(), config);
    EXPECT_EQ(again.Batch(7), order.Batch(7));
  }
}

TEST_F(SftDataTest, BucketsHoldSimilarLengths) {
  const auto data = Numbered(280);
  SftConfig config;
  config.set_batch_size(10);
  config.set_batching(LENGTH_BUCKETED);
  config.set_bucket_batches(7);
  SftOrder order(data.get(), config);
  int64_t spread = 0, shuffled_spread = 0;
  const auto widest = [&](const std::vector<int64_t>& batch) {
    int64_t low = 1 << 20, high = 0;
    for (const int64_t i : batch) {
      low = std::min(low, data->bytes(i));
      high = std::max(high, data->bytes(i));
    }
    return high - low;
  };
  for (int step = 0; step < 28; ++step) spread += widest(order.Batch(step));
  config.set_batching(SHUFFLED);
  SftOrder shuffled(data.get(), config);
  for (int step = 0; step < 28; ++step) shuffled_spread += widest(shuffled.Batch(step));
  EXPECT_LT(2 * spread, shuffled_spread);
}

TEST_F(SftDataTest, LossFallsOnResponseAndEndTokenOnly) {
  const auto data = Tokens(
      "{\"prompt\":\"ab\",\"response\":\"<think>c</think>\"}\n"
      "{\"prompt\":\"a\",\"response\":\"b<|endoftext|>\"}\n"
      "{\"prompt\":\"too long for the limit\",\"response\":\"b\"}\n");
  const SftBatch batch = MakeSftBatch(*data, {0, 1, 2}, 10, 100);
  EXPECT_EQ(batch.dropped, 1);
  EXPECT_EQ(batch.tokens, 6 + 3);
  EXPECT_EQ(batch.response_tokens, 4 + 2);
  ASSERT_EQ(batch.micro_batches.size(), 1);
  const SftMicroBatch& micro = batch.micro_batches[0];
  std::vector<int64_t> tokens, targets;
  for (int t = 0; t < 9; ++t) {
    tokens.push_back(micro.batch.tokens[t].item<int64_t>());
    targets.push_back(micro.targets[t].item<int64_t>());
  }
  // Sorted by length. An end token that the response already has is not added again.
  EXPECT_EQ(tokens, (std::vector<int64_t>{'a', 'b', 258, 'a', 'b', 256, 'c', 257, 258}));
  EXPECT_EQ(targets, (std::vector<int64_t>{'b', 258, -1, -1, 256, 'c', 257, 258, -1}));
}

TEST_F(SftDataTest, LossFallsOnEveryTaughtTurn) {
  policy_ = LoadTinyPolicy(dir_ + "/model");
  const std::string path =
      Write("turns.jsonl",
            "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
            "\"content\":\"b\"},"
            "{\"role\":\"user\",\"content\":\"c\"},{\"role\":\"assistant\",\"content\":\"d\"}]}\n");
  const auto targets = [&](SftConfig::Teach teach) {
    const auto data = TokensOf(policy_, {path}, dir_ + "/turns.tokens", teach);
    EXPECT_TRUE(data.ok()) << data.status();
    const SftBatch batch = MakeSftBatch(**data, {0}, 10, 100);
    EXPECT_EQ(batch.tokens, 6);
    EXPECT_EQ(batch.response_tokens, teach == SftConfig::ALL ? 4 : 2);
    std::vector<int64_t> targets;
    for (int t = 0; t < 6; ++t) {
      targets.push_back(batch.micro_batches[0].targets[t].item<int64_t>());
    }
    return targets;
  };
  EXPECT_EQ(targets(SftConfig::LAST), (std::vector<int64_t>{-1, -1, -1, 'd', 258, -1}));
  EXPECT_EQ(targets(SftConfig::ALL), (std::vector<int64_t>{'b', 258, -1, 'd', 258, -1}));
}

TEST_F(SftDataTest, RanksDealABatchOutByCost) {
  // Every second example is long, so that round-robin assignment would give all long examples to
  // one of two ranks; the longest examples are dropped.
  std::string text;
  std::vector<int64_t> indices;
  for (int i = 0; i < 48; ++i) {
    const int letters = i % 12 == 3 ? 600 : (i % 2 == 0 ? 5 + i : 200 + 5 * i);
    text += absl::StrCat("{\"prompt\": \"p", 10 + i, "\", \"response\": \"",
                         std::string(letters, 'x'), "\"}\n");
    indices.push_back(i);
  }
  const auto data = Tokens(text);
  SftShare share;
  share.cost.quadratic = 0.01;
  for (const int size : {1, 2, 3, 5}) {
    share.size = size;
    std::multiset<std::vector<int32_t>> seen;
    std::vector<double> loads(size, 0.0);
    double longest = 0;
    int64_t dropped = 0, tokens = 0;
    for (share.rank = 0; share.rank < size; ++share.rank) {
      const SftBatch batch = MakeSftBatch(*data, indices, 500, 1000, share);
      dropped += batch.dropped;
      tokens += batch.tokens;
      for (const SftMicroBatch& micro : batch.micro_batches) {
        EXPECT_LE(micro.batch.num_tokens(), 1000);
        const at::Tensor ids = micro.batch.tokens.to(at::kInt).contiguous();
        for (int64_t s = 0; s < micro.batch.num_sequences(); ++s) {
          const int64_t begin = micro.batch.offsets[s], end = micro.batch.offsets[s + 1];
          seen.emplace(ids.const_data_ptr<int32_t>() + begin, ids.const_data_ptr<int32_t>() + end);
          loads[share.rank] += share.cost.Of(end - begin);
          longest = std::max(longest, share.cost.Of(end - begin));
        }
      }
    }
    EXPECT_EQ(dropped, 4);
    EXPECT_EQ(seen.size(), 44);  // all prompts differ
    EXPECT_EQ(std::set<std::vector<int32_t>>(seen.begin(), seen.end()).size(), 44);
    int64_t seen_tokens = 0;
    for (const std::vector<int32_t>& sequence : seen) {
      seen_tokens += static_cast<int64_t>(sequence.size());
    }
    EXPECT_EQ(seen_tokens, tokens);
    const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
    EXPECT_LT(*most - *least, 0.2 * longest) << size << " ranks";
  }
}

TEST_F(SftDataTest, LoaderGivesStepsInOrderAndRanksShareABatch) {
  const auto data = Numbered(40);
  SftConfig config;
  config.set_batch_size(6);
  SftOrder order(data.get(), config);
  SftLoaderOptions options;
  options.threads = 3;
  options.first_step = 2;
  options.end_step = 12;
  SftLoader whole(options, data.get(), &order);
  options.size = 2;
  SftLoader even(options, data.get(), &order);
  options.rank = 1;
  SftLoader odd(options, data.get(), &order);
  for (int step = 2; step < 12; ++step) {
    const auto batch = whole.Next(), a = even.Next(), b = odd.Next();
    ASSERT_TRUE(batch.ok() && a.ok() && b.ok());
    const SftBatch direct = MakeSftBatch(*data, order.Batch(step), 1024, 4096);
    EXPECT_TRUE(batch->micro_batches[0].batch.tokens.equal(direct.micro_batches[0].batch.tokens));
    EXPECT_EQ(a->tokens + b->tokens, batch->tokens);
    EXPECT_EQ(a->response_tokens + b->response_tokens, batch->response_tokens);
  }
}

TEST_F(SftDataTest, EmptyResponsesAndLongExamplesAreCounted) {
  const auto line = [](const std::string& response) {
    return absl::StrCat("{\"prompt\": \"p\", \"response\": \"", response, "\"}\n");
  };
  const auto data = Tokens(absl::StrCat(
      line(""), line("x"), line(" \\n"), line("<think>\\n\\n</think>\\n\\n"), line("<|endoftext|>"),
      line(std::string(200, ' ')), line("<think>x</think>"), line(std::string(300, 'x'))));
  const std::string end = "<|endoftext|>";
  std::vector<bool> empty;
  for (int64_t i = 0; i < data->size(); ++i) {
    empty.push_back(HasEmptyResponse(*data, i, *policy_.tokenizer, end));
  }
  // A very long blank response is not looked at.
  EXPECT_EQ(empty, (std::vector<bool>{true, false, true, true, true, false, false, false}));
  const ExampleCounts counts = CountExamples(*data, 250, *policy_.tokenizer, end);
  EXPECT_EQ(counts.too_long, 1);
  EXPECT_EQ(counts.empty, 4);
  EXPECT_EQ(counts.TooLongSentence(),
            "1 of 8 examples are longer than max_sequence_tokens (250; the longest has 302 "
            "tokens) and are left out");
  EXPECT_EQ(counts.EmptySentence(),
            "4 examples have an empty response and teach only the end of a turn");
  EXPECT_TRUE(counts.Check().ok());
}

}  // namespace
}  // namespace tritonrl
