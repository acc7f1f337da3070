#include "trainer/sft/tokenise.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "trainer/sft/test_tokens.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

class TokeniseTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("tokenise");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
    policy_ = LoadTinyPolicy(dir_ + "/model");
    options_.cache = dir_ + "/cache/data.tokens";
    options_.say = [this](const std::string& line) { said_.push_back(line); };
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomic(dir_ + "/" + name, text).ok());
    return dir_ + "/" + name;
  }
  // A file of n pairs.
  std::string WritePairs(int n) {
    std::string text;
    for (int i = 0; i < n; ++i) {
      const nlohmann::json line = {{"prompt", absl::StrCat("say ", i)},
                                   {"response", std::string(i % 50, 'r')}};
      text += line.dump() + "\n";
    }
    return Write("pairs.jsonl", text);
  }

  absl::StatusOr<std::unique_ptr<TokenCache>> Run(SftConfig::Teach teach = SftConfig::LAST) {
    said_.clear();
    const PlainEncoder encoder(policy_.tokenizer.get(), "hash", policy_.end_token(), teach);
    ASSIGN_OR_RETURN(const std::string key, TokenCacheKey(options_, encoder));
    return TokeniseOnce(options_, key, encoder);
  }
  std::string Error() {
    const auto tokens = Run();
    EXPECT_FALSE(tokens.ok());
    return std::string(tokens.status().message());
  }
  std::string Said() const { return absl::StrJoin(said_, "\n"); }

  // The tokens of example i as text.
  std::string Text(const TokenCache& data, int64_t i) const {
    return policy_.tokenizer->Decode(data.tokens(i));
  }
  // The taught parts of example i, each followed by "|".
  std::string Taught(const TokenCache& data, int64_t i) const {
    std::string text;
    for (const TokenSpan& span : data.taught(i)) {
      text += policy_.tokenizer->Decode(data.tokens(i).subspan(span.begin, span.end - span.begin)) +
              "|";
    }
    return text;
  }

  // Changes one byte of the cache.
  void Damage(int64_t offset) {
    auto bytes = ReadFile(options_.cache);
    ASSERT_TRUE(bytes.ok());
    const size_t at = offset >= 0 ? offset : bytes->size() + offset;
    (*bytes)[at] = static_cast<char>((*bytes)[at] ^ 1);
    ASSERT_TRUE(WriteFileAtomic(options_.cache, *bytes).ok());
  }

  std::string dir_;
  Policy policy_;
  TokeniseOptions options_;
  std::vector<std::string> said_;
};

TEST_F(TokeniseTest, ReadsSeveralFilesOfDifferentForms) {
  options_.paths = {
      Write("a.jsonl",
            "{\"prompt\":\"1\",\"response\":\"x\\ny\"}\n\n{\"prompt\":\"2\",\"response\":\"\"}"),
      Write("b.json", "[{\"instruction\": \"3\", \"input\": \"4\", \"output\": \"z\"}]")};
  const auto data = Run();
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ((*data)->size(), 3);
  EXPECT_EQ(Text(**data, 0), "1x\ny<|endoftext|>");
  EXPECT_EQ(Text(**data, 1), "2<|endoftext|>");
  EXPECT_EQ(Text(**data, 2), "3\n4z<|endoftext|>");
  EXPECT_EQ(Taught(**data, 0), "x\ny<|endoftext|>|");
  EXPECT_EQ(Taught(**data, 1), "<|endoftext|>|");
  EXPECT_TRUE(absl::StrContains(Said(), "a.jsonl: 2 examples (prompt/response, JSON Lines)"));
  EXPECT_TRUE(absl::StrContains(Said(), "b.json: 1 examples (Alpaca, JSON array)")) << Said();
}

TEST_F(TokeniseTest, WithoutATemplateMessagesAreJoined) {
  options_.paths = {
      Write("a.jsonl",
            "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":"
            "\"q\"},"
            "{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"p\"},"
            "{\"role\":\"assistant\",\"content\":\"b\",\"reasoning\":\"r\"}]}\n")};
  const std::string text = "sqa<|endoftext|>p<think>\nr\n</think>\n\nb<|endoftext|>";
  auto data = Run();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Text(**data, 0), text);
  EXPECT_EQ(Taught(**data, 0), "<think>\nr\n</think>\n\nb<|endoftext|>|");
  data = Run(SftConfig::ALL);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Text(**data, 0), text);
  EXPECT_EQ(Taught(**data, 0), "a<|endoftext|>|<think>\nr\n</think>\n\nb<|endoftext|>|");
}

TEST_F(TokeniseTest, ReasoningContinuesAThoughtThatThePromptOpens) {
  options_.paths = {
      Write("m.jsonl",
            R"({"messages": [{"role": "user", "content": "q<think>\n"},)"
            R"( {"role": "assistant", "content": "a", "reasoning": "r"}]})"
            "\n"
            R"({"messages": [{"role": "user", "content": "q"},)"
            R"( {"role": "assistant", "content": "<think>r</think>a", "reasoning_content": "r"}]})"
            "\n"
            R"({"messages": [{"role": "user", "content": "q"},)"
            R"( {"role": "assistant", "content": "a", "reasoning_content": " \n"}]})")};
  const auto data = Run();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Taught(**data, 0), "r\n</think>\n\na<|endoftext|>|");
  EXPECT_EQ(Taught(**data, 1), "<think>\nr\n</think>\n\na<|endoftext|>|");
  EXPECT_EQ(Taught(**data, 2), "a<|endoftext|>|");
}

TEST_F(TokeniseTest, NamesTheFirstBadExampleAndCountsTheOthers) {
  const std::string good = "{\"prompt\":\"1\",\"response\":\"x\"}\n";
  const std::string path = Write(
      "bad.jsonl", absl::StrCat(good, "\nnonsense\n", good, "{\"prompt\":\"1\"}\n[1]\n", good));
  options_.paths = {WritePairs(5), path};
  EXPECT_TRUE(absl::StartsWith(Error(), path + ":3: this is no JSON from byte ")) << Error();
  EXPECT_TRUE(absl::EndsWith(Error(), "; 2 more bad examples follow")) << Error();
  EXPECT_FALSE(FileExists(options_.cache));
  options_.paths = {Write("one.jsonl", good + "{\"prompt\":\"1\"}\n")};
  EXPECT_EQ(Error(), options_.paths[0] +
                         ":2: the field \"response\" is missing (wanted: one object with "
                         "\"prompt\" and \"response\", each a string or a list of messages)");
  options_.paths = {Write("other.jsonl", "{\"question\":\"1\"}\n")};
  EXPECT_TRUE(
      absl::StartsWith(Error(), options_.paths[0] + ":1: the fields \"question\" are no known"))
      << Error();
  // A file has one form.
  options_.paths = {Write("mixed.jsonl", good + "{\"instruction\":\"1\",\"output\":\"2\"}\n")};
  EXPECT_TRUE(absl::StrContains(Error(), ":2: the field \"prompt\" is missing")) << Error();
}

TEST_F(TokeniseTest, ATokenWithoutARowInTheModelIsABadExample) {
  options_.paths = {Write("a.jsonl", "{\"prompt\":\"1\",\"response\":\"x\"}\n")};
  options_.vocab_size = policy_.config.vocab_size;
  ASSERT_TRUE(Run().ok());
  options_.vocab_size = policy_.end_token();
  EXPECT_TRUE(absl::StartsWith(
      Error(), absl::StrCat(options_.paths[0], ":1: the text has the token ", policy_.end_token())))
      << Error();
}

TEST_F(TokeniseTest, AnEmptySetOrAMissingFileIsAnError) {
  options_.paths = {Write("empty.jsonl", "\n\n")};
  EXPECT_EQ(Error(), "there is no example in " + options_.paths[0]);
  options_.paths = {dir_ + "/no"};
  EXPECT_EQ(Error(), "cannot open " + dir_ + "/no: No such file or directory");
}

TEST_F(TokeniseTest, TheNumberOfThreadsChangesNothing) {
  options_.paths = {WritePairs(2000)};
  ASSERT_TRUE(Run().ok());
  const auto one = ReadFile(options_.cache);
  options_.threads = 4;
  options_.cache = dir_ + "/cache/four.tokens";
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(*ReadFile(options_.cache) == *one);
}

TEST_F(TokeniseTest, TokensAreKept) {
  options_.paths = {WritePairs(100)};
  const auto made = Run();
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(absl::StrContains(Said(), ", kept in " + options_.cache)) << Said();
  const auto kept = Run();
  ASSERT_TRUE(kept.ok());
  EXPECT_TRUE(absl::StrContains(Said(), "100 examples (prompt/response, JSON Lines)")) << Said();
  EXPECT_TRUE(absl::StrContains(Said(), "tokens of an earlier start: ")) << Said();
  ASSERT_EQ((*kept)->size(), 100);
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(std::ranges::equal((*kept)->tokens(i), (*made)->tokens(i)));
    EXPECT_TRUE(std::ranges::equal((*kept)->taught(i), (*made)->taught(i)));
    EXPECT_EQ((*kept)->bytes(i), (*made)->bytes(i));
  }
}

TEST_F(TokeniseTest, AnotherFileOptionOrTokenizerMakesThemAgain) {
  const std::string other =
      "it was made from other data, options or another model; it is made again";
  options_.paths = {WritePairs(100)};
  ASSERT_TRUE(Run().ok());
  options_.limit = 7;
  ASSERT_EQ((*Run())->size(), 7);
  EXPECT_TRUE(absl::StrContains(Said(), other)) << Said();
  ASSERT_TRUE(Run(SftConfig::ALL).ok());
  EXPECT_TRUE(absl::StrContains(Said(), other)) << Said();
  WritePairs(101);
  options_.limit = 0;
  ASSERT_EQ((*Run())->size(), 101);
  EXPECT_TRUE(absl::StrContains(Said(), other)) << Said();
}

TEST_F(TokeniseTest, ADamagedCacheIsMadeAgain) {
  options_.paths = {WritePairs(100)};
  ASSERT_TRUE(Run().ok());
  const std::string sound = *ReadFile(options_.cache);
  const int64_t size = static_cast<int64_t>(sound.size());
  const auto expect_again = [&](const std::string& reason) {
    const auto data = Run();
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_TRUE(absl::StrContains(
        Said(), absl::StrCat("is not used, because ", reason, "; it is made again")))
        << Said();
    EXPECT_TRUE(*ReadFile(options_.cache) == sound);
  };
  Damage(0);
  expect_again("it does not begin like a token cache");
  Damage(100);
  expect_again("the checksum of its tokens is wrong");
  Damage(-100);
  expect_again("the checksum of its index is wrong");
  Damage(-40);  // a count in the tail
  expect_again("it has not the size that it states");
  ASSERT_EQ(truncate(options_.cache.c_str(), size / 2), 0);
  expect_again("it has not the size that it states");
  ASSERT_EQ(truncate(options_.cache.c_str(), 10), 0);
  expect_again("it is too short");
}

// A limit on the size of files stands for a full disk.
TEST_F(TokeniseTest, AFullDiskIsNamedAndLeavesNothingBehind) {
  options_.paths = {WritePairs(3000)};
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = Error();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(error, "cannot write " + options_.cache + ": File too large");
  const auto left = ListDirectory(dir_ + "/cache");
  ASSERT_TRUE(left.ok());
  EXPECT_TRUE(left->empty());
}

}  // namespace
}  // namespace tritonrl
