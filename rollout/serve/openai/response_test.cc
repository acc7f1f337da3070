#include "rollout/serve/openai/response.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

#include "model/chat/testing/byte_tokenizer.h"
#include "rollout/serve/openai/api_json.h"

namespace tritonrl {
namespace {

using nlohmann::json;

CompletionHeader Head(bool chat) {
  return {chat, "id-1", 1700000000, "m", /*log_probs=*/true, /*top_log_probs=*/1};
}

ChoiceText Choice() {
  const float impossible = -std::numeric_limits<float>::infinity();
  return {2,
          {"a\xEF\xBF\xBD",
           {{"a", -0.5f, 0, {{"a", -0.5f}, {"b", -1.0f}}},
            {"\xE2\x82", impossible, 1, {{"b", -0.25f}}}}},
          "length"};
}

TEST(OpenaiResponse, LogProbsAreNumbersAndTokensAreTexts) {
  const json completion = FullResponse(Head(false), {Choice()}, {3, 4})["choices"][0]["logprobs"];
  EXPECT_EQ(completion["tokens"], (json{"a", "bytes:\\xe2\\x82"}));
  EXPECT_EQ(completion["token_logprobs"], (json{-0.5, -9999.0}));
  EXPECT_EQ(completion["top_logprobs"][0], (json{{"a", -0.5}})) << "one alternative is wanted";
  EXPECT_EQ(completion["top_logprobs"][1], (json{{"b", -0.25}, {"bytes:\\xe2\\x82", -9999.0}}))
      << "and the token itself";
  const json chat = FullResponse(Head(true), {Choice()}, {3, 4})["choices"][0]["logprobs"];
  const json first = {{"token", "a"}, {"logprob", -0.5}, {"bytes", {97}}};
  EXPECT_EQ(chat["content"][0]["top_logprobs"], json::array({first}));
  EXPECT_EQ(chat["content"][1]["token"], "\xEF\xBF\xBD");
  EXPECT_EQ(chat["content"][1]["bytes"], (json{0xE2, 0x82}));
  EXPECT_EQ(chat["content"][1]["top_logprobs"][0]["token"], "b");
}

TEST(OpenaiResponse, TheFirstTokenOfAPromptHasNone) {
  ChoiceText choice = Choice();
  choice.piece.tokens[0] = {"a", std::nullopt, 0, {}};
  const json log_probs = FullResponse(Head(false), {choice}, {3, 4})["choices"][0]["logprobs"];
  EXPECT_EQ(log_probs["token_logprobs"], (json{nullptr, -9999.0}));
  EXPECT_TRUE(log_probs["top_logprobs"][0].is_null());
}

TEST(OpenaiResponse, PromptLogProbsAreByTokenId) {
  const Tokenizer tokenizer = ByteTokenizer({"<end>"});
  GenerateRequest::PromptLogProbs prompt = {
      {.token = {'a', -0.5f}, .rank = 1, .top = {{'a', -0.5f}, {'b', -1.0f}}},
      {.token = {256, -7.0f}, .rank = 9, .top = {{'c', -0.125f}, {0xC3, -2.0f}}}};
  const json expected = {nullptr,
                         {{"97", {{"logprob", -0.5}, {"rank", 1}, {"decoded_token", "a"}}}},
                         {{"99", {{"logprob", -0.125}, {"rank", 1}, {"decoded_token", "c"}}},
                          {"256", {{"logprob", -7.0}, {"rank", 9}, {"decoded_token", "<end>"}}}}};
  EXPECT_EQ(PromptLogProbsJson(tokenizer, prompt, 1), expected);
  EXPECT_EQ(PromptLogProbsJson(tokenizer, prompt, 2)[2]["195"]["decoded_token"], "\xEF\xBF\xBD");
  EXPECT_EQ(PromptLogProbsJson(tokenizer, prompt, 0)[1].size(), 1u) << "the token itself";
  ChoiceText choice = Choice();
  choice.prompt_log_probs = expected;
  EXPECT_EQ(FullResponse(Head(false), {choice}, {3, 4})["choices"][0]["prompt_logprobs"], expected);
  const json chat = FullResponse(Head(true), {choice}, {3, 4});
  EXPECT_EQ(chat["prompt_logprobs"], expected);
  EXPECT_FALSE(chat["choices"][0].contains("prompt_logprobs"));
}

TEST(OpenaiResponse, ChunksCarryOneChoice) {
  const json completion = TextChunk(Head(false), Choice());
  EXPECT_EQ(completion["object"], "text_completion");
  EXPECT_EQ(completion["id"], "id-1");
  EXPECT_EQ(completion["choices"].size(), 1u);
  EXPECT_EQ(completion["choices"][0]["index"], 2);
  EXPECT_EQ(completion["choices"][0]["finish_reason"], "length");
  const json chat = TextChunk(Head(true), Choice());
  EXPECT_EQ(chat["choices"][0]["delta"], (json{{"content", "a\xEF\xBF\xBD"}}));
  const json end = TextChunk(Head(true), {0, {}, "stop"});
  EXPECT_EQ(end["choices"][0]["delta"], json::object());
  EXPECT_TRUE(end["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(UsageChunk(Head(true), {3, 4})["usage"]["total_tokens"], 7);
  EXPECT_EQ(SseEvent({{"a", 1}}), "data: {\"a\":1}\n\n");
}

TEST(OpenaiResponse, ErrorsHaveTheirFourFields) {
  EXPECT_EQ(ErrorJson(FieldError("top_p", "must be above 0")),
            (json{{"error",
                   {{"message", "top_p must be above 0"},
                    {"type", "invalid_request_error"},
                    {"param", "top_p"},
                    {"code", nullptr}}}}));
  const absl::Status coded = WithErrorCode(absl::NotFoundError("x"), "model_not_found");
  EXPECT_EQ(HttpStatus(coded), 404);
  EXPECT_EQ(ErrorJson(coded)["error"]["code"], "model_not_found");
  EXPECT_EQ(ErrorJson(absl::InternalError("x"))["error"]["type"], "server_error");
  EXPECT_EQ(JsonText("\xFF"), "\"\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace tritonrl
