#include "rollout/serve/openai/response.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "rollout/serve/openai/api_json.h"

namespace tritonrl {
namespace {

using nlohmann::json;

CompletionHeader Head(bool chat) {
  return {chat, "id-1", 1700000000, "m", /*log_probs=*/true, /*top_log_probs=*/1};
}

ChoiceText Choice() {
  const float impossible = -std::numeric_limits<float>::infinity();
  return {2, {"a\xEF\xBF\xBD", {{"a", -0.5f, 0}, {"\xE2\x82", impossible, 1}}}, "length"};
}

TEST(OpenaiResponse, LogProbsAreNumbersAndTokensAreTexts) {
  const json completion = FullResponse(Head(false), {Choice()}, {3, 4})["choices"][0]["logprobs"];
  EXPECT_EQ(completion["tokens"], (json{"a", "bytes:\\xe2\\x82"}));
  EXPECT_EQ(completion["token_logprobs"], (json{-0.5, -9999.0}));
  EXPECT_EQ(completion["top_logprobs"][0], (json{{"a", -0.5}}));
  const json chat = FullResponse(Head(true), {Choice()}, {3, 4})["choices"][0]["logprobs"];
  const json first = {{"token", "a"}, {"logprob", -0.5}, {"bytes", {97}}};
  EXPECT_EQ(chat["content"][0]["top_logprobs"], json::array({first}));
  EXPECT_EQ(chat["content"][1]["token"], "\xEF\xBF\xBD");
  EXPECT_EQ(chat["content"][1]["bytes"], (json{0xE2, 0x82}));
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
