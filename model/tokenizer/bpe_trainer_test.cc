#include "model/tokenizer/bpe_trainer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/tokenizer/tokenizer.h"

namespace tritonrl {
namespace {

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

TEST(LearnMerges, TakesTheMostFrequentPairThenTheLowestIds) {
  // "0 1 2" occurs five times and "1 2 3" three times: (1,2) 8, then (0,10) 5, then (10,3) 3.
  const std::vector<CountedWord> words = {{{0, 1, 2}, 5}, {{1, 2, 3}, 3}};
  EXPECT_EQ(LearnMerges(words, 10, 9, 1), (Pairs{{1, 2}, {0, 10}, {10, 3}}));
  EXPECT_EQ(LearnMerges(words, 10, 9, 4), (Pairs{{1, 2}, {0, 10}}));
  EXPECT_EQ(LearnMerges(words, 10, 1, 1), (Pairs{{1, 2}}));
  // A tie goes to the lowest pair.
  EXPECT_EQ(LearnMerges({{{7, 8}, 2}, {{5, 6}, 2}}, 10, 1, 1), (Pairs{{5, 6}}));
}

TEST(LearnMerges, CountsRepeatedSymbolsAfterEachMerge) {
  // aaaa: (a,a) occurs three times, then AA once.
  EXPECT_EQ(LearnMerges({{{0, 0, 0, 0}, 1}}, 10, 9, 1), (Pairs{{0, 0}, {10, 10}}));
  // aaaaa becomes A A a: both remaining pairs, (10,0) and (10,10), occur once, and (10,0) is lower.
  EXPECT_EQ(LearnMerges({{{0, 0, 0, 0, 0}, 1}}, 10, 9, 1), (Pairs{{0, 0}, {10, 0}, {10, 11}}));
}

std::string Train(const BpeTrainerOptions& options, const std::vector<std::string>& texts) {
  absl::StatusOr<BpeTrainer> trainer = BpeTrainer::Create(options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  for (const std::string& text : texts) trainer->AddText(text);
  absl::StatusOr<std::string> json = trainer->Train();
  EXPECT_TRUE(json.ok()) << json.status();
  return *json;
}

const std::vector<std::string> kTexts = {
    "<think>fuse mul relu in one kernel</think>\nx = tl.load(x_ptr + offsets, mask=mask)\n",
    "def forward(self, x):\n    return self.linear(x) + 1024\n", "tl.store(out_ptr + offsets, x)"};

TEST(BpeTrainer, MakesATokenizerThatRestoresTheText) {
  BpeTrainerOptions options;
  options.vocab_size = 320;
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::FromJson(Train(options, kTexts), "trained");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_LE(tokenizer->vocab_size(), 320);
  EXPECT_GT(tokenizer->vocab_size(), 261);
  for (const std::string& text : kTexts) {
    const std::vector<int32_t> ids = tokenizer->Encode(text);
    EXPECT_LT(ids.size(), text.size());
    EXPECT_EQ(tokenizer->Decode(ids), text);
  }
  const std::string other = "\xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x98\x80 unseen";
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(other)), other);
}

TEST(BpeTrainer, AddedTokensAreLastAndWhole) {
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::FromJson(Train({}, kTexts), "trained");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const int size = tokenizer->vocab_size();
  EXPECT_EQ(tokenizer->TokenId("<|endoftext|>"), size - 5);
  EXPECT_EQ(tokenizer->TokenId("<|im_end|>"), size - 3);
  EXPECT_EQ(tokenizer->TokenId("</think>"), size - 1);
  EXPECT_TRUE(tokenizer->IsSpecial(size - 3));
  EXPECT_FALSE(tokenizer->IsSpecial(size - 1));
  // Digits are never merged.
  EXPECT_EQ(tokenizer->Encode("1024").size(), 4u);
}

TEST(BpeTrainer, OrderOfTextsDoesNotMatter) {
  const std::vector<std::string> reversed(kTexts.rbegin(), kTexts.rend());
  EXPECT_EQ(Train({}, kTexts), Train({}, reversed));
}

TEST(BpeTrainer, BadOptionsAreErrors) {
  BpeTrainerOptions options;
  options.vocab_size = 200;
  EXPECT_EQ(BpeTrainer::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
  absl::StatusOr<BpeTrainer> trainer = BpeTrainer::Create({});
  ASSERT_TRUE(trainer.ok());
  EXPECT_EQ(trainer->Train().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tritonrl
