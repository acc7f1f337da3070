#include "trainer/learner/tokenizer_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "model/chat/testing/chat_folder.h"
#include "model/weights/model_config.h"
#include "nlohmann/json.hpp"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr int32_t kEndOfText = 257, kEndOfTurn = 260;  // of LlamaLikeTokenizer

class TokenizerFilesTest : public testing::Test {
 protected:
  // A folder whose config.json names <|end_of_text|>, while its template ends turns with
  // <|eot_id|>.
  void SetUp() override {
    ModelConfig config = TinyModelConfig();
    config.eos_token_ids = {kEndOfText};
    ASSERT_TRUE(WriteModelConfig(config, folder_.dir()).ok());
    folder_.Write("tokenizer.json",
                  ByteTokenizerJson({"<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>",
                                     "<|end_header_id|>", "<|eot_id|>"})
                      .dump());
  }

  void WriteTemplate(const std::string& text) {
    folder_.Write("tokenizer_config.json", json{{"chat_template", text}}.dump());
  }
  absl::StatusOr<Policy> Load(const std::string& dir, const ChatConfig& chat = {}) {
    PolicyConfig config = TinyPolicyConfig(dir);
    *config.mutable_chat() = chat;
    return LoadPolicy(config, {.threads = 1});
  }
  std::string Error(const ChatConfig& chat = {}) {
    return Message(Load(folder_.dir(), chat).status());
  }
  // eos_token_id of a saved folder's generation_config.json; null without the file.
  json SavedEos(const Policy& policy) {
    EXPECT_TRUE(SavePolicy(policy, saved_.dir(), FLOAT32).ok());
    const auto text = ReadFile(saved_.Path("generation_config.json"));
    return text.ok() ? json::parse(*text)["eos_token_id"] : json();
  }

  const ChatFolder folder_, saved_;
};

TEST_F(TokenizerFilesTest, TheTemplatesEndOfTurnIsTaughtAndSaved) {
  WriteTemplate(kLlama3Template);
  const Policy policy = Load(folder_.dir()).value();
  EXPECT_EQ(policy.end_token(), kEndOfTurn);
  EXPECT_EQ(policy.stop_tokens, (Ids{kEndOfText, kEndOfTurn}));
  EXPECT_EQ(SavedEos(policy), (json{kEndOfText, kEndOfTurn}));
  const Policy again = Load(saved_.dir()).value();
  EXPECT_EQ(again.end_token(), kEndOfTurn);
  EXPECT_EQ(again.chat->text(), kLlama3Template);
  EXPECT_EQ(again.chat->CacheKey(), policy.chat->CacheKey());
}

TEST_F(TokenizerFilesTest, AnEndTokenThatTheFilesNameStays) {
  WriteTemplate(kLlama3Template);
  const std::string generation = R"({"temperature": 0.6, "eos_token_id": [260, 256]})";
  folder_.Write("generation_config.json", generation);
  const Policy policy = Load(folder_.dir()).value();
  EXPECT_EQ(policy.stop_tokens, (Ids{260, 256, kEndOfText}));
  EXPECT_EQ(SavedEos(policy), (json{260, 256}));
  EXPECT_EQ(ReadFile(saved_.Path("generation_config.json")).value(), generation);
}

TEST_F(TokenizerFilesTest, OtherFieldsOfGenerationConfigStay) {
  WriteTemplate(kLlama3Template);
  folder_.Write("generation_config.json", R"({"temperature": 0.6, "eos_token_id": 257})");
  EXPECT_EQ(SavedEos(Load(folder_.dir()).value()), (json{257, kEndOfTurn}));
  EXPECT_EQ(json::parse(ReadFile(saved_.Path("generation_config.json")).value())["temperature"],
            0.6);
}

TEST_F(TokenizerFilesTest, WithoutATemplateTheEndTokenIsThatOfTheConfiguration) {
  const Policy policy = Load(folder_.dir()).value();
  EXPECT_TRUE(policy.chat->plain());
  EXPECT_EQ(policy.end_token(), kEndOfText);
  EXPECT_EQ(SavedEos(policy), json());
  WriteTemplate(kLlama3Template);
  ChatConfig none;
  none.set_template_("none");
  EXPECT_EQ(Load(folder_.dir(), none)->end_token(), kEndOfText);
}

TEST_F(TokenizerFilesTest, AnEndTokenOfGenerationConfigAloneIsEnough) {
  ModelConfig config = TinyModelConfig();
  config.eos_token_ids = {};
  ASSERT_TRUE(WriteModelConfig(config, folder_.dir()).ok());
  EXPECT_THAT(Error(), HasSubstr("eos_token_id is missing"));
  folder_.Write("generation_config.json", R"({"eos_token_id": 258})");
  EXPECT_EQ(Load(folder_.dir())->end_token(), 258);
  folder_.Write("generation_config.json", R"({"eos_token_id": 5000})");
  EXPECT_THAT(Error(), HasSubstr("eos_token_id 5000 lies outside the vocabulary of 272"));
}

TEST_F(TokenizerFilesTest, TheUsersTemplateTravelsWithTheModel) {
  folder_.Write("additional_chat_templates/tool_use.jinja", "tools");
  folder_.Write("chat_template.jinja", kLlama3Template);
  folder_.Write("mine.jinja", "{% for m in messages %}{{ m.content }}<|end_of_text|>{% endfor %}");
  ChatConfig mine;
  mine.set_template_(folder_.Path("mine.jinja"));
  const Policy policy = Load(folder_.dir(), mine).value();
  EXPECT_EQ(policy.end_token(), kEndOfText);
  ASSERT_TRUE(SavePolicy(policy, saved_.dir(), FLOAT32).ok());
  EXPECT_EQ(Load(saved_.dir())->chat->text(), policy.chat->text());
  EXPECT_EQ(ReadFile(saved_.Path("additional_chat_templates/tool_use.jinja")).value(), "tools");
}

TEST_F(TokenizerFilesTest, ATemplateThatRaisesIsRefused) {
  WriteTemplate("{{ raise_exception('Only for tools') }}");
  EXPECT_THAT(Error(), HasSubstr("Only for tools"));
  EXPECT_THAT(Error(), HasSubstr("policy.chat: chat template ("));
  ChatConfig chat;
  chat.set_arguments("{");
  EXPECT_THAT(Error(chat), HasSubstr("must be a JSON object"));
}

}  // namespace
}  // namespace tritonrl
