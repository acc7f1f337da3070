// The server's extensions of OpenAI's API, which are those of vLLM.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "rollout/serve/testing/server_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;

TEST_F(ServerTest, StopTokensOfTheRequest) {
  Start();
  auto reply = PostAsync("/v1/completions",
                         Completion({{"stop_token_ids", {'z', kEnd}}, {"ignore_eos", true}}));
  const GenerateRequest ignoring = engine_.WaitForRequest(0);
  EXPECT_EQ(ignoring.sampling.stop_ids, (std::vector<int32_t>{'z', kEnd}));
  engine_.Draw(ignoring, 0, "xz");
  engine_.End(ignoring, 0, FinishReason::kStop);
  const json answer = reply.get().json();
  EXPECT_EQ(answer["choices"][0]["text"], "x") << "the token that ends an answer is not shown";
  EXPECT_EQ(answer["choices"][0]["stop_reason"], 'z');
  EXPECT_EQ(answer["usage"]["completion_tokens"], 2);

  reply = PostAsync("/v1/completions", Completion({{"stop_token_ids", {kEnd}}}));
  const GenerateRequest beside = engine_.WaitForRequest(1);
  EXPECT_EQ(beside.sampling.stop_ids, (std::vector<int32_t>{kEnd}));
  EndWith(beside, 0, "z");
  EXPECT_EQ(reply.get().json()["choices"][0]["stop_reason"], nullptr) << "the model's own";

  reply = PostAsync("/v1/completions", Completion({{"ignore_eos", true}}));
  const GenerateRequest endless = engine_.WaitForRequest(2);
  EXPECT_TRUE(endless.sampling.stop_ids.empty());
  engine_.Draw(endless, 0, kEnd);
  EndWith(endless, 0, "on", FinishReason::kLength);
  EXPECT_EQ(reply.get().json()["choices"][0]["text"], "on");

  const HttpReply outside =
      Post(port(), "/v1/completions", Completion({{"stop_token_ids", {300}}}));
  EXPECT_EQ(outside.status, 400);
  EXPECT_TRUE(absl::StrContains(outside.error(), "stop_token_ids holds the id 300"));
}

TEST_F(ServerTest, TokenIdsBesideTheText) {
  Start();
  auto reply =
      PostAsync("/v1/completions",
                {{"prompt", json::array({{72}, {73, 74}})}, {"n", 2}, {"return_token_ids", true}});
  const GenerateRequest first = engine_.WaitForRequest(0), second = engine_.WaitForRequest(1);
  for (const int i : {0, 1}) EndWith(first, i, "a");
  for (const int i : {0, 1}) EndWith(second, i, "b", FinishReason::kLength);
  const json choices = reply.get().json()["choices"];
  EXPECT_EQ(choices[1]["token_ids"], (json{'a', kEnd}));
  EXPECT_EQ(choices[1]["prompt_token_ids"], (json{72}));
  EXPECT_EQ(choices[2]["token_ids"], (json{'b'}));
  EXPECT_EQ(choices[2]["prompt_token_ids"], (json{73, 74}));

  reply = PostAsync("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "x"}}}},
                                             {"return_token_ids", true},
                                             {"stop", "cd"},
                                             {"stream", true}});
  const GenerateRequest chat = engine_.WaitForRequest(2);
  engine_.Draw(chat, 0, "abc");
  EndWith(chat, 0, "e");
  json prompt, ids = json::array();
  std::string text;
  for (const std::string& event : reply.get().events()) {
    if (event == "[DONE]") break;
    const json chunk = json::parse(event);
    if (chunk.contains("prompt_token_ids")) prompt.push_back(chunk["prompt_token_ids"]);
    for (const json& id : chunk["choices"][0]["token_ids"]) ids.push_back(id);
    text += chunk["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(prompt, json::array({chat.prompt})) << "once";
  EXPECT_EQ(ids, (json{'a', 'b', 'c', 'e', kEnd}));
  EXPECT_EQ(text, "abce");
}

TEST_F(ServerTest, EachTokenIdHasItsLogProb) {
  Start();
  for (const bool chat : {false, true}) {
    const json message = {{"role", "user"}, {"content", "x"}};
    auto reply = chat ? PostAsync("/v1/chat/completions", {{"messages", json::array({message})},
                                                           {"logprobs", true},
                                                           {"return_token_ids", true}})
                      : PostAsync("/v1/completions",
                                  Completion({{"logprobs", 0}, {"return_token_ids", true}}));
    const GenerateRequest request = engine_.WaitForRequest(chat ? 1 : 0);
    engine_.Draw(request, 0, 'a', -2);
    engine_.Draw(request, 0, 257, -3);  // special, without a text
    engine_.Draw(request, 0, 'b', -4);
    engine_.Draw(request, 0, kEnd, -5);
    engine_.End(request, 0, FinishReason::kStop);
    const json choice = reply.get().json()["choices"][0];
    EXPECT_EQ(chat ? choice["message"]["content"] : choice["text"], "ab");
    EXPECT_EQ(choice["token_ids"], (json{'a', 257, 'b', kEnd}));
    json values = json::array();
    if (chat) {
      for (const json& token : choice["logprobs"]["content"]) values.push_back(token["logprob"]);
    } else {
      values = choice["logprobs"]["token_logprobs"];
      EXPECT_EQ(choice["logprobs"]["text_offset"], (json{0, 1, 1, 2}));
    }
    EXPECT_EQ(values, (json{-2, -3, -4, -5}));
  }
}

TEST_F(ServerTest, EveryAnswerHasARequestId) {
  Start();
  const auto id = [&](const std::string& given) {
    const HttpReply reply = Call(port(), "GET", "/nowhere", "", {{"X-Request-Id", given}});
    const auto it = reply.headers.find("X-Request-Id");
    return it == reply.headers.end() ? "" : it->second;
  };
  EXPECT_EQ(id("trace-7/a"), "trace-7/a");
  const std::string one = id(""), other = id("two words");
  EXPECT_TRUE(absl::StartsWith(one, "req-") && absl::StartsWith(other, "req-")) << one << other;
  EXPECT_NE(one, other);
  EXPECT_TRUE(absl::StartsWith(id(std::string(129, 'x')), "req-"));
  auto reply = PostAsync("/v1/completions", Completion({{"stream", true}}));
  EndWith(engine_.WaitForRequest(0), 0, "x");
  EXPECT_EQ(reply.get().headers.count("X-Request-Id"), 1u);
}

TEST_F(ServerTest, AnEchoListsEveryToken) {
  Start();
  auto reply =
      PostAsync("/v1/completions",
                Completion({{"echo", true}, {"logprobs", 2}, {"prompt", {'H', 257, 'i'}}}));
  const GenerateRequest request = engine_.WaitForRequest(0);
  EXPECT_EQ(request.top_prompt_log_probs, 2);
  EXPECT_EQ(request.top_log_probs, 2);
  auto prompt = std::make_shared<GenerateRequest::PromptLogProbs>();
  prompt->push_back({.token = {257, -3}, .rank = 2, .top = {{'x', -1}, {257, -3}}});
  prompt->push_back({.token = {'i', -4}, .rank = 5, .top = {{'y', -1}, {'z', -2}}});
  request.on_prompt_log_probs(prompt);
  EndWith(request, 0, "!");
  const json choice = reply.get().json()["choices"][0], log_probs = choice["logprobs"];
  EXPECT_EQ(choice["text"], "H<|im_start|>i!") << "the prompt as it was given";
  EXPECT_EQ(log_probs["tokens"], (json{"H", "<|im_start|>", "i", "!", "<|im_end|>"}))
      << "the token that ends the answer too";
  EXPECT_EQ(log_probs["token_logprobs"], (json{nullptr, -3, -4, -1, -1}));
  EXPECT_EQ(log_probs["text_offset"], (json{0, 1, 13, 14, 15}));
  EXPECT_EQ(log_probs["top_logprobs"][1], (json{{"x", -1}, {"<|im_start|>", -3}}));
  EXPECT_EQ(log_probs["top_logprobs"][2], (json{{"y", -1}, {"z", -2}, {"i", -4}}));
}

TEST_F(ServerTest, TheEngineIsAskedForNoMoreThanIsNeeded) {
  Start();
  const auto asked = [&](size_t before, const json& more) {
    auto reply = PostAsync("/v1/completions", Completion(more));
    const GenerateRequest request = engine_.WaitForRequest(before);
    if (request.on_prompt_log_probs) {
      request.on_prompt_log_probs(std::make_shared<GenerateRequest::PromptLogProbs>(4));
    }
    engine_.End(request, 0, FinishReason::kLength);
    EXPECT_EQ(reply.get().status, 200);
    return std::pair<bool, bool>(request.on_log_probs != nullptr,
                                 request.on_prompt_log_probs != nullptr);
  };
  using Asked = std::pair<bool, bool>;
  EXPECT_EQ(asked(0, {{"echo", true}}), Asked(false, false));
  EXPECT_EQ(asked(1, {{"logprobs", 0}}), Asked(false, false)) << "the engine's are the model's";
  EXPECT_EQ(asked(2, {{"logprobs", 0}, {"temperature", 0.5}}), Asked(true, false));
  EXPECT_EQ(asked(3, {{"logprobs", 0}, {"echo", true}}), Asked(false, true));
  EXPECT_EQ(asked(4, {{"prompt_logprobs", 0}, {"max_tokens", 0}}), Asked(false, true));
}

}  // namespace
}  // namespace tritonrl
