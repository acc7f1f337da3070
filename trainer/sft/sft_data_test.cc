#include "trainer/sft/sft_data.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gtest/gtest.h"
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
  // n examples; example i has the prompt "p<i>" and a response of i % 7 + 1 letters.
  std::unique_ptr<JsonlData> Numbered(int n) {
    std::string text;
    for (int i = 0; i < n; ++i) {
      text += absl::StrCat("{\"prompt\": \"p", i, "\", \"response\": \"",
                           std::string(i % 7 + 1, 'x'), "\"}\n");
    }
    auto data = JsonlData::Open({Write("numbered.jsonl", text)});
    EXPECT_TRUE(data.ok()) << data.status();
    return *std::move(data);
  }

  std::string dir_;
};

TEST_F(SftDataTest, ReadsSeveralFilesAndSkipsBlankLines) {
  const std::string a = Write("a.jsonl",
                              "{\"prompt\":\"1\",\"response\":\"x\\ny\"}\n\n  \n"
                              "{\"prompt\":\"2\",\"response\":\"\"}");
  const std::string b = Write("b.jsonl", "{\"response\":\"z\",\"prompt\":\"3\",\"level\":1}\n");
  const auto data = JsonlData::Open({a, b});
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ((*data)->size(), 3);
  EXPECT_EQ((*data)->Read(0)->response, "x\ny");
  EXPECT_EQ((*data)->Read(1)->prompt, "2");
  EXPECT_EQ((*data)->Read(2)->response, "z");
}

TEST_F(SftDataTest, NamesFileLineAndField) {
  const std::string path =
      Write("bad.jsonl",
            "{\"prompt\":\"1\",\"response\":\"x\"}\n\nnonsense\n{\"prompt\":\"1\"}\n"
            "{\"prompt\":1,\"response\":\"x\"}\n[1]\n");
  const auto data = JsonlData::Open({path});
  ASSERT_TRUE(data.ok());
  const auto message = [&](int i) { return std::string((*data)->Read(i).status().message()); };
  EXPECT_EQ(message(1), path + ":3: this line is no JSON");
  EXPECT_EQ(message(2), path + ":4: the field \"response\" is missing");
  EXPECT_EQ(message(3), path + ":5: the field \"prompt\" is no string");
  EXPECT_EQ(message(4), path + ":6: this line is no JSON object");
}

TEST_F(SftDataTest, AnEmptySetOrAMissingFileIsAnError) {
  const std::string empty = Write("empty.jsonl", "\n\n");
  EXPECT_NE(JsonlData::Open({empty}).status().message().find(empty), absl::string_view::npos);
  EXPECT_NE(JsonlData::Open({dir_ + "/no"}).status().message().find("/no"),
            absl::string_view::npos);
}

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
  const Policy policy = LoadTinyPolicy(dir_ + "/model");
  const auto data =
      JsonlData::Open({Write("d.jsonl",
                             "{\"prompt\":\"ab\",\"response\":\"<think>c</think>\"}\n"
                             "{\"prompt\":\"a\",\"response\":\"b<|endoftext|>\"}\n"
                             "{\"prompt\":\"too long for the limit\",\"response\":\"b\"}\n")});
  ASSERT_TRUE(data.ok());
  const auto batch =
      MakeSftBatch(**data, {0, 1, 2}, *policy.tokenizer, policy.end_token(), 10, 100);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->dropped, 1);
  EXPECT_EQ(batch->tokens, 6 + 3);
  EXPECT_EQ(batch->response_tokens, 4 + 2);
  ASSERT_EQ(batch->micro_batches.size(), 1);
  const SftMicroBatch& micro = batch->micro_batches[0];
  std::vector<int64_t> tokens, targets;
  for (int t = 0; t < 9; ++t) {
    tokens.push_back(micro.batch.tokens[t].item<int64_t>());
    targets.push_back(micro.targets[t].item<int64_t>());
  }
  // Sorted by length. An end token that the response already has is not added again.
  EXPECT_EQ(tokens, (std::vector<int64_t>{'a', 'b', 258, 'a', 'b', 256, 'c', 257, 258}));
  EXPECT_EQ(targets, (std::vector<int64_t>{'b', 258, -1, -1, 256, 'c', 257, 258, -1}));
}

TEST_F(SftDataTest, RanksDealABatchOutByCost) {
  const Policy policy = LoadTinyPolicy(dir_ + "/model");
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
  const auto data = JsonlData::Open({Write("long.jsonl", text)});
  ASSERT_TRUE(data.ok());
  SftShare share;
  share.cost.quadratic = 0.01;
  for (const int size : {1, 2, 3, 5}) {
    share.size = size;
    std::multiset<std::vector<int32_t>> seen;
    std::vector<double> loads(size, 0.0);
    double longest = 0;
    int64_t dropped = 0, tokens = 0;
    for (share.rank = 0; share.rank < size; ++share.rank) {
      const auto batch =
          MakeSftBatch(**data, indices, *policy.tokenizer, policy.end_token(), 500, 1000, share);
      ASSERT_TRUE(batch.ok()) << batch.status();
      dropped += batch->dropped;
      tokens += batch->tokens;
      for (const SftMicroBatch& micro : batch->micro_batches) {
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
  const Policy policy = LoadTinyPolicy(dir_ + "/model");
  const auto data = Numbered(40);
  SftConfig config;
  config.set_batch_size(6);
  SftOrder order(data.get(), config);
  SftLoaderOptions options;
  options.end_token = policy.end_token();
  options.threads = 3;
  options.first_step = 2;
  options.end_step = 12;
  SftLoader whole(options, data.get(), &order, policy.tokenizer.get());
  options.size = 2;
  SftLoader even(options, data.get(), &order, policy.tokenizer.get());
  options.rank = 1;
  SftLoader odd(options, data.get(), &order, policy.tokenizer.get());
  for (int step = 2; step < 12; ++step) {
    const auto batch = whole.Next(), a = even.Next(), b = odd.Next();
    ASSERT_TRUE(batch.ok() && a.ok() && b.ok());
    const auto direct =
        MakeSftBatch(*data, order.Batch(step), *policy.tokenizer, policy.end_token(), 1024, 4096);
    EXPECT_TRUE(batch->micro_batches[0].batch.tokens.equal(direct->micro_batches[0].batch.tokens));
    EXPECT_EQ(a->tokens + b->tokens, batch->tokens);
    EXPECT_EQ(a->response_tokens + b->response_tokens, batch->response_tokens);
  }
}

}  // namespace
}  // namespace tritonrl
