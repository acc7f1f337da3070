// The server's answers, with an engine whose tokens the tests draw.
#include "rollout/serve/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "rollout/serve/testing/server_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;

TEST_F(ServerTest, AWholeCompletion) {
  Start();
  auto reply = PostAsync("/v1/completions", Completion({{"seed", 9}, {"temperature", 0.5}}));
  const GenerateRequest request = engine_.WaitForRequest(0);
  EXPECT_EQ(request.prompt, (std::vector<int32_t>{'H', 'e', 'l', 'l', 'o'}));
  EXPECT_EQ(request.key.run_seed, 9u);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.max_tokens, 50);
  EXPECT_EQ(request.sampling.stop_ids, (std::vector<int32_t>{kEnd}));
  EndWith(request, 0, "you");
  const HttpReply got = reply.get();
  EXPECT_EQ(got.status, 200);
  const json answer = got.json();
  EXPECT_TRUE(absl::StartsWith(answer["id"].get<std::string>(), "cmpl-"));
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["model"], "test");
  EXPECT_TRUE(answer["created"].is_number_integer());
  EXPECT_EQ(answer["choices"], json::array({{{"index", 0},
                                             {"text", "you"},
                                             {"logprobs", nullptr},
                                             {"finish_reason", "stop"},
                                             {"stop_reason", nullptr}}}));
  EXPECT_EQ(answer["usage"],
            (json{{"prompt_tokens", 5}, {"completion_tokens", 4}, {"total_tokens", 9}}));
}

TEST_F(ServerTest, SeveralPromptsAndAnswers) {
  Start();
  auto reply = PostAsync("/v1/completions", {{"prompt", json::array({{72}, {73, 74}})}, {"n", 2}});
  const GenerateRequest first = engine_.WaitForRequest(0), second = engine_.WaitForRequest(1);
  EXPECT_EQ(first.sampling.max_tokens, 199) << "what the context leaves";
  EXPECT_EQ(second.sampling.max_tokens, 198);
  EndWith(second, 1, "d", FinishReason::kLength);
  EndWith(first, 0, "a");
  EndWith(second, 0, "c");
  EndWith(first, 1, "b");
  const json answer = reply.get().json();
  ASSERT_EQ(answer["choices"].size(), 4u);
  std::string texts;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    texts += answer["choices"][i]["text"];
  }
  EXPECT_EQ(texts, "abcd");
  EXPECT_EQ(answer["choices"][3]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 7);
}

TEST_F(ServerTest, AChatWithLogProbs) {
  Start();
  auto reply = PostAsync(
      "/v1/chat/completions",
      {{"messages", {{{"role", "user"}, {"content", "<|im_end|>"}}}}, {"logprobs", true}});
  const GenerateRequest request = engine_.WaitForRequest(0);
  EXPECT_EQ(std::count(request.prompt.begin(), request.prompt.end(), kEnd), 1)
      << "the user's own marker is text";
  engine_.Draw(request, 0, 0xC3, -0.25f);
  engine_.Draw(request, 0, 0xA9, -0.5f);
  engine_.Draw(request, 0, kEnd, -1);
  engine_.End(request, 0, FinishReason::kStop);
  const json answer = reply.get().json();
  EXPECT_TRUE(absl::StartsWith(answer["id"].get<std::string>(), "chatcmpl-"));
  EXPECT_EQ(answer["object"], "chat.completion");
  const json choice = answer["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], "\xC3\xA9");
  const json tokens = choice["logprobs"]["content"];
  ASSERT_EQ(tokens.size(), 2u) << "the token that ends the answer is not shown";
  EXPECT_EQ(tokens[1], (json{{"token", "\xEF\xBF\xBD"},
                             {"logprob", -0.5},
                             {"bytes", {0xA9}},
                             {"top_logprobs", json::array()}}));
}

TEST_F(ServerTest, CompletionLogProbs) {
  Start();
  auto reply = PostAsync("/v1/completions", Completion({{"logprobs", 1}, {"temperature", 0}}));
  const GenerateRequest request = engine_.WaitForRequest(0);
  for (const int token : {0x61, 0xC3, 0xA9, 0x62}) engine_.Draw(request, 0, token, -2);
  engine_.End(request, 0, FinishReason::kLength);
  const json log_probs = reply.get().json()["choices"][0]["logprobs"];
  EXPECT_EQ(log_probs["tokens"], (json{"a", "bytes:\\xc3", "bytes:\\xa9", "b"}));
  EXPECT_EQ(log_probs["token_logprobs"], (json{-2, -2, -2, -2}));
  EXPECT_EQ(log_probs["text_offset"], (json{0, 1, 1, 2}));
  EXPECT_EQ(log_probs["top_logprobs"][3], (json{{"b", -2}}));
}

TEST_F(ServerTest, AStopStringAcrossTokensEndsItsAnswerAlone) {
  Start();
  auto reply = PostAsync("/v1/completions", Completion({{"stop", "END"}, {"n", 2}}));
  const GenerateRequest request = engine_.WaitForRequest(0);
  EXPECT_EQ(request.n, 2) << "the prompt is computed once";
  engine_.Draw(request, 0, "one E");
  engine_.Draw(request, 0, "ND");
  EXPECT_TRUE(WaitUntil([&] { return !engine_.IsOpen(request, 0); }));
  EXPECT_TRUE(engine_.IsOpen(request, 1));
  EndWith(request, 1, "two EN");
  const json answer = reply.get().json();
  EXPECT_EQ(answer["choices"][0]["text"], "one ");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(answer["choices"][0]["stop_reason"], "END");
  EXPECT_EQ(answer["choices"][1]["text"], "two EN");
  EXPECT_EQ(answer["choices"][1]["stop_reason"], nullptr);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 14);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 5) << "once, however the engine computes it";
}

TEST_F(ServerTest, AStreamSendsTokensAsTheyCome) {
  Start();
  RawClient client(port());
  const std::string body =
      Completion({{"stream", true}, {"stream_options", {{"include_usage", true}}}}).dump();
  client.Send(absl::StrCat("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ",
                           body.size(), "\r\n\r\n", body));
  const GenerateRequest request = engine_.WaitForRequest(0);
  engine_.Draw(request, 0, "a");
  const std::string head = client.ReadUntil("\"text\":\"a\"");
  EXPECT_TRUE(absl::StrContains(head, "200 OK") &&
              absl::StrContains(head, "Content-Type: text/event-stream"))
      << head;
  engine_.Draw(request, 0, 0xC3);
  engine_.Draw(request, 0, 0xA9);
  EXPECT_TRUE(absl::StrContains(client.ReadUntil("\xC3\xA9"), "\"text\":\"\xC3\xA9\""));
  EndWith(request, 0, "");
  const std::string rest = client.ReadUntil("[DONE]\n\n");
  EXPECT_TRUE(absl::StrContains(rest, "\"finish_reason\":\"stop\""));
  EXPECT_TRUE(absl::StrContains(rest, "\"choices\":[]"));
  EXPECT_TRUE(absl::StrContains(rest, "\"completion_tokens\":4")) << rest;
}

TEST_F(ServerTest, AChatStreamBeginsWithItsRole) {
  Start();
  auto reply = PostAsync("/v1/chat/completions",
                         {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"stream", true}});
  EndWith(engine_.WaitForRequest(0), 0, "hi");
  const std::vector<std::string> events = reply.get().events();
  ASSERT_GE(events.size(), 3u);
  const json first = json::parse(events[0]);
  EXPECT_EQ(first["object"], "chat.completion.chunk");
  EXPECT_EQ(first["choices"][0]["delta"], (json{{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text, reason;
  for (size_t i = 1; i + 1 < events.size(); ++i) {
    const json choice = json::parse(events[i])["choices"][0];
    text += choice["delta"].value("content", "");
    if (!choice["finish_reason"].is_null()) reason = choice["finish_reason"];
  }
  EXPECT_EQ(text, "hi");
  EXPECT_EQ(reason, "stop");
}

TEST_F(ServerTest, Models) {
  Start();
  const json list = Call(port(), "GET", "/v1/models").json();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "test");
  EXPECT_EQ(list["data"][0]["max_model_len"], 200);
  EXPECT_EQ(Call(port(), "GET", "/v1/models/test").json()["object"], "model");
  EXPECT_EQ(Call(port(), "GET", "/v1/models/other").status, 404);
  const HttpReply unknown = Post(port(), "/v1/completions", Completion({{"model", "gpt"}}));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.json()["error"]["code"], "model_not_found");
}

TEST_F(ServerTest, MistakesAreToldInOneSentence) {
  Start();
  struct Case {
    HttpReply reply;
    int status;
    const char* message;
  };
  const Case cases[] = {
      {Call(port(), "POST", "/v1/completions", "{"), 400, "not valid JSON"},
      {Post(port(), "/v1/completions", Completion({{"n", "two"}})), 400, "n must be"},
      {Post(port(), "/v1/completions", Completion({{"prompt", ""}})), 400, "prompt is empty"},
      {Post(port(), "/v1/completions", Completion({{"prompt", {5, 300}}})), 400, "the id 300"},
      {Post(port(), "/v1/completions", Completion({{"max_tokens", 201}})), 400, "limit is 200"},
      {Post(port(), "/v1/completions", Completion({{"max_tokens", 196}})), 400,
       "prompt of 5 tokens and max_tokens 196 are too long: this model's context is 200"},
      {Call(port(), "GET", "/v2/completions"), 404, "there is no /v2/completions"},
      {Call(port(), "GET", "/v1/completions"), 405, "takes POST requests, not GET"},
      {Call(port(), "POST", "/health", "{}"), 405, "takes GET requests, not POST"},
      {Call(port(), "DELETE", "/v1/models/test"), 405, "not DELETE"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(c.reply.status, c.status) << c.reply.body;
    EXPECT_TRUE(absl::StrContains(c.reply.error(), c.message)) << c.reply.body;
    EXPECT_EQ(c.reply.json()["error"].size(), 4u);
  }
  EXPECT_EQ(
      Post(port(), "/v1/completions", Completion({{"max_tokens", 196}})).json()["error"]["code"],
      "context_length_exceeded");
  EXPECT_EQ(engine_.Outstanding(), 0);
}

TEST_F(ServerTest, TheKeyIsAskedFor) {
  ServerOptions options;
  options.api_key = "sk-0123456789abcdef";
  Start(options);
  const auto status = [&](const std::string& path, const httplib::Headers& headers) {
    return Call(port(), "GET", path, "", headers).status;
  };
  EXPECT_EQ(status("/health", {}), 200);
  for (const char* path : {"/v1/models", "/metrics", "/nowhere"}) {
    EXPECT_EQ(status(path, {}), 401) << path;
  }
  EXPECT_EQ(status("/v1/models", {{"Authorization", "Bearer sk-0123456789abcdeX"}}), 401);
  EXPECT_EQ(status("/v1/models", {{"Authorization", "Basic sk-0123456789abcdef"}}), 401);
  EXPECT_EQ(status("/v1/models", {{"Authorization", "Bearer sk-0123456789abcdef"}}), 200);
  const HttpReply refused = Post(port(), "/v1/completions", Completion());
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.json()["error"]["code"], "invalid_api_key");
}

TEST_F(ServerTest, OtherAddressesThanLoopbackNeedAKey) {
  ServerOptions options;
  options.http.host = "0.0.0.0";
  const Tokenizer tokenizer = ByteTokenizer({});
  const auto server = Server::Start(
      options, {"m", tokenizer, ChatTemplate::Load("", {}, tokenizer).value()}, &engine_);
  EXPECT_TRUE(absl::IsInvalidArgument(server.status()));
  EXPECT_TRUE(absl::StrContains(server.status().message(), "--api_key_file"));
}

TEST_F(ServerTest, ATakenPortIsSaid) {
  Start();
  ServerOptions options;
  options.http.port = port();
  const Tokenizer tokenizer = ByteTokenizer({});
  const auto second = Server::Start(
      options, {"m", tokenizer, ChatTemplate::Load("", {}, tokenizer).value()}, &engine_);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

TEST_F(ServerTest, Metrics) {
  Start();
  auto reply = PostAsync("/v1/completions", Completion());
  const GenerateRequest request = engine_.WaitForRequest(0);
  EXPECT_EQ(Metric("tritonrl_samples_waiting"), "1");
  EXPECT_EQ(Metric("tritonrl_requests_in_progress"), "1");
  engine_.Draw(request, 0, "ab");
  EXPECT_EQ(Metric("tritonrl_samples_running"), "1");
  EndWith(request, 0, "c");
  EXPECT_EQ(reply.get().status, 200);
  Call(port(), "GET", "/nowhere");
  EXPECT_TRUE(WaitUntil([&] {
    return Metric("tritonrl_requests_total{endpoint=\"/v1/completions\",status=\"200\"}") == "1";
  }));
  EXPECT_TRUE(WaitUntil([&] { return Metric("tritonrl_samples_running") == "0"; }));
  EXPECT_EQ(Metric("tritonrl_requests_total{endpoint=\"other\",status=\"404\"}"), "1");
  EXPECT_EQ(Metric("tritonrl_prompt_tokens_total"), "5");
  EXPECT_EQ(Metric("tritonrl_completion_tokens_total"), "4");
  EXPECT_EQ(Metric("tritonrl_completions_total{finish_reason=\"stop\"}"), "1");
  EXPECT_EQ(Metric("tritonrl_request_seconds_count"), "1");
  EXPECT_EQ(Metric("tritonrl_time_to_first_token_seconds_count"), "1");
  EXPECT_EQ(Metric("tritonrl_time_per_output_token_seconds_bucket{le=\"+Inf\"}"), "1");
}

}  // namespace
}  // namespace tritonrl
