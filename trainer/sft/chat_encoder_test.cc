#include "trainer/sft/chat_encoder.h"

#include <span>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "trainer/sft/tokenise.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

constexpr char kTemplate[] =
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}"
    "{% endif %}[{{ m.role }}]{{ m.content | trim }}<|endoftext|>\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

class ChatEncoderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("chat_encoder");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
    policy_ = LoadTinyPolicy(dir_ + "/model");
    SetTemplate(kTemplate);
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  void SetTemplate(const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/model/chat_template.jinja", text).ok());
  }
  absl::StatusOr<std::unique_ptr<TokenCache>> Tokens(const std::string& data,
                                                     SftConfig::Teach teach = SftConfig::LAST) {
    EXPECT_TRUE(WriteFileAtomic(dir_ + "/data.jsonl", data).ok());
    auto chat = ChatTemplate::Load(dir_ + "/model", {}, *policy_.tokenizer);
    if (!chat.ok()) return chat.status();
    const ChatEncoder encoder(*std::move(chat), "hash", teach);
    const TokeniseOptions options = {.paths = {dir_ + "/data.jsonl"},
                                     .cache = dir_ + "/cache/tokens",
                                     .threads = 2,
                                     .say = [this](const std::string& line) { said_ += line; }};
    auto key = TokenCacheKey(options, encoder);
    if (!key.ok()) return key.status();
    return TokeniseOnce(options, *key, encoder);
  }
  // The first example as text, with what is taught in (( )).
  std::string Shown(const TokenCache& data) const {
    const std::span<const int32_t> tokens = data.tokens(0);
    const auto text = [&](size_t begin, size_t end) {
      return policy_.tokenizer->Decode(tokens.subspan(begin, end - begin));
    };
    std::string shown;
    size_t done = 0;
    for (const TokenSpan& span : data.taught(0)) {
      absl::StrAppend(&shown, text(done, span.begin), "((", text(span.begin, span.end), "))");
      done = span.end;
    }
    return shown + text(done, tokens.size());
  }

  std::string dir_, said_;
  Policy policy_;
};

constexpr char kMessages[] =
    R"({"messages": [{"role": "user", "content": " q "}, {"role": "assistant", "content": "a"},)"
    R"( {"role": "user", "content": "p"}, {"role": "assistant", "content": "b"}]})";

TEST_F(ChatEncoderTest, TheTemplateWritesTheTurnsAndTheirEndIsTaught) {
  auto data = Tokens(kMessages);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Shown(**data),
            "[user]q<|endoftext|>\n[assistant]a<|endoftext|>\n[user]p<|endoftext|>\n"
            "[assistant]((b<|endoftext|>))");
  data = Tokens(kMessages, SftConfig::ALL);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Shown(**data),
            "[user]q<|endoftext|>\n[assistant]((a<|endoftext|>))\n[user]p<|endoftext|>\n"
            "[assistant]((b<|endoftext|>))");
}

TEST_F(ChatEncoderTest, APairIsAConversationOfTwoTurns) {
  const auto data = Tokens(R"({"prompt": "q", "response": "<think>t</think>a"})");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Shown(**data), "[user]q<|endoftext|>\n[assistant]((<think>t</think>a<|endoftext|>))");
}

TEST_F(ChatEncoderTest, APromptThatIsRenderedAlreadyIsRefused) {
  for (const std::string line :
       {R"({"prompt": "\n<|endoftext|>[user]q", "response": "a"})",
        R"({"prompt": "<|endoftext|>[user]q", "completion": "a"})",
        R"({"instruction": "<|endoftext|>[user]q", "output": "a"})",
        R"({"messages": [{"role": "user", "content": "<|endoftext|>[user]q"},)"
        R"( {"role": "assistant", "content": "a"}]})"}) {
    const auto data = Tokens(absl::StrCat(line, "\n", line));
    ASSERT_FALSE(data.ok()) << line;
    EXPECT_EQ(data.status().message(),
              absl::StrCat(dir_, "/data.jsonl:1: the prompt begins with <|endoftext|>, which the ",
                           "chat template (", dir_, "/model/chat_template.jinja) writes itself, ",
                           "so the prompt is rendered already; set policy.chat.template: \"none\" ",
                           "for such data, or remove the markers; 1 more bad examples follow"));
  }
  // A mention further on is text.
  EXPECT_TRUE(Tokens(R"({"prompt": "What is <|endoftext|>?", "response": "a"})").ok());
}

TEST_F(ChatEncoderTest, AnotherTemplateMakesTheTokensAgain) {
  ASSERT_TRUE(Tokens(kMessages).ok());
  SetTemplate(absl::StrCat("!", kTemplate));
  const auto again = Tokens(kMessages);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(absl::StartsWith(Shown(**again), "![user]"));
}

TEST_F(ChatEncoderTest, ATemplateThatRefusesAnExampleIsNamedWithItsLine) {
  const auto data = Tokens(absl::StrCat(
      kMessages, "\n",
      R"({"messages": [{"role": "tool", "content": "q"}, {"role": "assistant", "content": "a"}]})"));
  ASSERT_FALSE(data.ok());
  EXPECT_TRUE(absl::StartsWith(data.status().message(), dir_ + "/data.jsonl:2: ")) << data.status();
  EXPECT_TRUE(absl::StrContains(data.status().message(), "no tools here")) << data.status();
}

}  // namespace
}  // namespace tritonrl
