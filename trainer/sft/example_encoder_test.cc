#include "trainer/sft/example_encoder.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/chat/testing/byte_tokenizer.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

constexpr int32_t kBegin = 256, kEnd = 257;

Tokenizer TokenizerWithABeginToken() {
  const nlohmann::json begin = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  const nlohmann::json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  nlohmann::json json = ByteTokenizerJson({"<s>", "</s>"});
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {begin, text}},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {kBegin}}, {"tokens", {"<s>"}}}}}}};
  return Tokenizer::FromJson(json.dump(), "a test").value();
}

TEST(PlainEncoderTest, TheBeginTokenComesOnce) {
  const Tokenizer tokenizer = TokenizerWithABeginToken();
  ASSERT_EQ(tokenizer.special_prefix(), std::vector<int32_t>{kBegin});
  const PlainEncoder encoder(&tokenizer, "hash", kEnd, SftConfig::LAST);
  for (const std::string prompt : {"q", "<s>q"}) {
    const auto example = encoder.Encode({{{"user", prompt, {}}, {"assistant", "a", {}}}});
    ASSERT_TRUE(example.ok()) << example.status();
    EXPECT_EQ(example->tokens, (std::vector<int32_t>{kBegin, 'q', 'a', kEnd})) << prompt;
    EXPECT_EQ(example->taught, (std::vector<TokenSpan>{{2, 4}})) << prompt;
  }
}

TEST(PlainEncoderTest, ReasoningAfterAClosedThoughtIsRefused) {
  const Tokenizer tokenizer = TokenizerWithABeginToken();
  const PlainEncoder encoder(&tokenizer, "hash", kEnd, SftConfig::LAST);
  const auto example = encoder.Encode({{{"user", "q</think>\n", {}}, {"assistant", "a", "r"}}});
  EXPECT_TRUE(absl::IsInvalidArgument(example.status())) << example.status();
}

}  // namespace
}  // namespace tritonrl
