#include "trainer/grpo/plan_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/runfiles.h"
#include "model/tokenizer/bpe_trainer.h"

namespace tritonrl {
namespace {

using Tokens = std::vector<int32_t>;

constexpr ResponseStyle kThinking = {};
constexpr ResponseStyle kPlain = {.plan = ResponseStyle::Plan::kPlain,
                                  .code_block = ResponseStyle::CodeBlock::kFirst};

// A tokenizer in which `</think>` is ordinary text that merges with its neighbours.
Tokenizer OrdinaryTokenizer() {
  BpeTrainerOptions options;
  options.vocab_size = 340;
  options.special_tokens = {"<|endoftext|>"};
  options.other_added_tokens = {};
  BpeTrainer trainer = BpeTrainer::Create(options).value();
  for (int i = 0; i < 8; ++i) {
    trainer.AddText("<think>\nOne kernel.</think>\n```python\nimport triton\n```\n");
    trainer.AddText("Here is the kernel:\n\n```python\nimport triton\n```\n");
  }
  return Tokenizer::FromJson(trainer.Train().value(), "ordinary").value();
}

Tokenizer MiniTokenizer() {
  return Tokenizer::Load(Runfile("model/mini/tokenizer.json").value()).value();
}

std::string BytesOf(const Tokenizer& tokenizer, const Tokens& tokens, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += tokenizer.TokenBytes(tokens[i]);
  return bytes;
}

// The least number of tokens whose text holds the tag; all of them if none does.
int TokensUpToTheTag(const Tokenizer& tokenizer, const Tokens& tokens) {
  const int size = static_cast<int>(tokens.size());
  for (int n = 0; n < size; ++n) {
    if (absl::StrContains(BytesOf(tokenizer, tokens, n), "</think>")) return n;
  }
  return size;
}

TEST(PlanTokensTest, ATagOfOrdinaryTokensMergesWithItsNeighbours) {
  const Tokenizer tokenizer = OrdinaryTokenizer();
  ASSERT_TRUE(tokenizer.TokenId(".</").has_value());
  ASSERT_TRUE(tokenizer.TokenId(">\n").has_value() || tokenizer.TokenId(">\n```").has_value());
  for (const std::string plan :
       {"One kernel.", "One kernel", "One kernel. ", "One kernel.\n", ""}) {
    for (const std::string code : {"\n```python\nx\n```", "```python\nx\n```", " x", "", "\n\n"}) {
      const std::string text = absl::StrCat("<think>", plan, "</think>", code, "<|endoftext|>");
      const Tokens tokens = tokenizer.Encode(text);
      const int split = PlanTokens(tokenizer, tokens, kThinking);
      EXPECT_EQ(split, TokensUpToTheTag(tokenizer, tokens)) << text;
      EXPECT_LT(split, tokens.size()) << "the end of text is a code token";
    }
  }
  // The last plan token holds the line's end too.
  const Tokens tokens = tokenizer.Encode("One kernel.</think>\nx");
  const int split = PlanTokens(tokenizer, tokens, kThinking);
  EXPECT_EQ(BytesOf(tokenizer, tokens, split), "One kernel.</think>\n");
  EXPECT_EQ(PlanTokens(tokenizer, tokenizer.Encode("no tag"), kThinking),
            tokenizer.Encode("no tag").size());
}

TEST(PlanTokensTest, ThePlanOfAPlainResponseEndsBeforeItsFence) {
  const Tokenizer tokenizer = OrdinaryTokenizer();
  const Tokens prose = tokenizer.Encode("Here is the kernel:\nx\n```python\nx\n```\n");
  const int split = PlanTokens(tokenizer, prose, kPlain);
  EXPECT_EQ(BytesOf(tokenizer, prose, split), "Here is the kernel:\nx\n");
  EXPECT_EQ(PlanTokens(tokenizer, tokenizer.Encode("```python\nx\n```\n"), kPlain), 0);
  const Tokens thought = tokenizer.Encode("<think>p</think>\n```python\nx\n```\n");
  EXPECT_EQ(PlanTokens(tokenizer, thought, kPlain), PlanTokens(tokenizer, thought, kThinking));
}

// As before responses were split by text: up to and with the first added token `</think>`.
int TokensUpToTheAddedToken(const Tokens& tokens, int32_t think_close) {
  const auto found = std::find(tokens.begin(), tokens.end(), think_close);
  return static_cast<int>(found - tokens.begin()) + (found != tokens.end() ? 1 : 0);
}

TEST(PlanTokensTest, AnAddedTokenSplitsWhereItStands) {
  const Tokenizer tokenizer = MiniTokenizer();
  const int32_t think_close = tokenizer.TokenId("</think>").value();
  std::mt19937 random(1);
  std::uniform_int_distribution<int32_t> any(0, tokenizer.vocab_size() + 3);  // padding ids too
  int split = 0;
  for (int i = 0; i < 3000; ++i) {
    Tokens tokens(any(random) % 200);
    for (int32_t& token : tokens) token = any(random);
    if (i % 2 == 0 && !tokens.empty()) tokens[any(random) % tokens.size()] = think_close;
    const int expected = TokensUpToTheAddedToken(tokens, think_close);
    ASSERT_EQ(PlanTokens(tokenizer, tokens, kThinking), expected) << "sequence " << i;
    split += expected < tokens.size();
  }
  EXPECT_GT(split, 1000);
}

TEST(PlanTokensTest, IncompleteCharactersAndTokensWithoutText) {
  const Tokenizer tokenizer = OrdinaryTokenizer();
  const Tokens e = tokenizer.Encode("\xC3\xA9");
  ASSERT_EQ(e.size(), 2);
  const Tokens close = tokenizer.Encode("</think>");
  const int32_t no_token = tokenizer.vocab_size() + 7;
  const int32_t control = tokenizer.TokenId("<|endoftext|>").value();
  Tokens tokens = {e[0], no_token, control, e[0], e[1], e[1]};
  tokens.insert(tokens.end(), close.begin(), close.end());
  const int expected = static_cast<int>(tokens.size());
  tokens.insert(tokens.end(), {no_token, e[0], control});
  EXPECT_EQ(PlanTokens(tokenizer, tokens, kThinking), expected);
  // The text that is verified agrees: bytes that are no characters became U+FFFD in it.
  const SplitResponse read = ReadResponse(tokenizer.Decode(tokens), kThinking);
  EXPECT_EQ(read.plan, "\xEF\xBF\xBD<|endoftext|>\xC3\xA9\xEF\xBF\xBD");
  EXPECT_EQ(PlanTokens(tokenizer, {}, kThinking), 0);
}

}  // namespace
}  // namespace tritonrl
