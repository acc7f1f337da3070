#include "rollout/serve/openai/request.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "rollout/serve/openai/api_json.h"

namespace tritonrl {
namespace {

using nlohmann::json;

json Completion(const json& more = json::object()) {
  json request = {{"model", "mini"}, {"prompt", "x"}};
  request.update(more);
  return request;
}

json Chat(const json& more = json::object()) {
  json request = {{"model", "mini"}, {"messages", {{{"role", "user"}, {"content", "x"}}}}};
  request.update(more);
  return request;
}

// The field that an error names, and its message; both empty without an error.
template <typename Request>
std::pair<std::string, std::string> ErrorOf(const absl::StatusOr<Request>& request) {
  if (request.ok()) return {};
  EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << request.status();
  const json error = ErrorJson(request.status())["error"];
  EXPECT_EQ(error["type"], "invalid_request_error");
  return {error["param"].is_null() ? "" : error["param"].get<std::string>(),
          error["message"].get<std::string>()};
}

std::pair<std::string, std::string> CompletionError(const json& more) {
  return ErrorOf(ParseCompletionRequest(Completion(more).dump()));
}
std::pair<std::string, std::string> ChatError(const json& more) {
  return ErrorOf(ParseChatRequest(Chat(more).dump()));
}

TEST(OpenaiRequest, ReadsACompletion) {
  const auto request = ParseCompletionRequest(
      R"({"model": "m", "prompt": ["a", "b"], "max_tokens": 5, "temperature": 0.5, "top_p": 0.9,
          "top_k": 3, "n": 2, "best_of": 2, "stream": true, "stream_options":
          {"include_usage": true}, "logprobs": 0, "echo": false, "stop": ["x", "y"], "seed": -1,
          "suffix": null, "logit_bias": {}, "presence_penalty": 0, "frequency_penalty": 0.0,
          "user": "me"})");
  ASSERT_TRUE(request.ok()) << request.status();
  const GenerationParams& params = request->params;
  EXPECT_EQ(params.model, "m");
  EXPECT_EQ(std::get<std::string>(request->prompts[1]), "b");
  EXPECT_EQ(params.max_tokens, 5);
  EXPECT_EQ(params.sampling.temperature, 0.5);
  EXPECT_EQ(params.sampling.top_p, 0.9);
  EXPECT_EQ(params.sampling.top_k, 3);
  EXPECT_FALSE(params.sampling.draws_on_host());
  EXPECT_EQ(params.n, 2);
  EXPECT_TRUE(params.stream && params.include_usage && params.log_probs);
  EXPECT_EQ(params.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(params.seed, ~uint64_t{0});
}

TEST(OpenaiRequest, PenaltiesAndBiases) {
  const json fields = {{"presence_penalty", -2},
                       {"frequency_penalty", 0.5},
                       {"repetition_penalty", 1.25},
                       {"min_p", 0.1},
                       {"logit_bias", {{"7", -100}, {"0", 2.5}}}};
  const auto completion = ParseCompletionRequest(Completion(fields).dump());
  const auto chat = ParseChatRequest(Chat(fields).dump());
  ASSERT_TRUE(completion.ok()) << completion.status();
  ASSERT_TRUE(chat.ok()) << chat.status();
  for (const GenerationParams* params : {&completion->params, &chat->params}) {
    EXPECT_EQ(params->sampling.presence_penalty, -2);
    EXPECT_EQ(params->sampling.frequency_penalty, 0.5);
    EXPECT_EQ(params->sampling.repetition_penalty, 1.25);
    EXPECT_EQ(params->sampling.min_p, 0.1);
    EXPECT_EQ(params->sampling.logit_bias,
              (std::vector<std::pair<int32_t, float>>{{0, 2.5f}, {7, -100.0f}}));
  }
}

TEST(OpenaiRequest, LogProbsOfPromptsAndAlternatives) {
  const auto completion = ParseCompletionRequest(
      Completion({{"echo", true}, {"max_tokens", 0}, {"logprobs", 20}}).dump());
  ASSERT_TRUE(completion.ok()) << completion.status();
  EXPECT_TRUE(completion->params.echo && completion->params.log_probs);
  EXPECT_EQ(completion->params.max_tokens, 0);
  EXPECT_EQ(completion->params.top_log_probs, 20);
  EXPECT_FALSE(completion->params.prompt_log_probs.has_value());
  const auto chat = ParseChatRequest(
      Chat({{"logprobs", true}, {"top_logprobs", 20}, {"prompt_logprobs", 3}, {"max_tokens", 0}})
          .dump());
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_EQ(chat->params.top_log_probs, 20);
  EXPECT_EQ(chat->params.prompt_log_probs, 3);
}

TEST(OpenaiRequest, AnAssistantsMessageMayHaveNoContent) {
  for (const json& message :
       {json{{"role", "assistant"}, {"content", nullptr}}, json{{"role", "assistant"}}}) {
    const auto request = ParseChatRequest(Chat({{"messages", json::array({message})}}).dump());
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->messages[0].content, "");
  }
}

TEST(OpenaiRequest, FieldsOfOtherServers) {
  const json same = {{"skip_special_tokens", true},
                     {"spaces_between_special_tokens", true},
                     {"include_stop_str_in_output", false},
                     {"min_tokens", 0},
                     {"priority", 0},
                     {"prompt_logprobs", nullptr},
                     {"ignore_eos", true},
                     {"stop_token_ids", {7, 8}},
                     {"return_token_ids", true}};
  json completion = same, chat = same;
  completion["add_special_tokens"] = true;
  chat.update({{"add_special_tokens", false}, {"add_generation_prompt", true}, {"echo", false}});
  const auto request = ParseCompletionRequest(Completion(completion).dump());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(request->params.ignore_eos && request->params.return_token_ids);
  EXPECT_EQ(request->params.stop_token_ids, (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(ChatError(chat).second, "");
}

TEST(OpenaiRequest, PromptsOfAllKinds) {
  const auto prompts = [](const json& prompt) {
    const auto request = ParseCompletionRequest(Completion({{"prompt", prompt}}).dump());
    EXPECT_TRUE(request.ok()) << request.status();
    return request.ok() ? request->prompts : std::vector<CompletionRequest::Prompt>{};
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(prompts("").size(), 1u);
  EXPECT_EQ(prompts({1, 2, 3}), (std::vector<CompletionRequest::Prompt>{Ids{1, 2, 3}}));
  EXPECT_EQ(prompts(json::array({{1}, {2, 3}})),
            (std::vector<CompletionRequest::Prompt>{Ids{1}, Ids{2, 3}}));
}

TEST(OpenaiRequest, ReadsAChat) {
  const auto request = ParseChatRequest(
      R"({"messages": [{"role": "developer", "content": "s"},
          {"role": "user", "name": "me", "content": [{"type": "text", "text": "a"},
                                                    {"type": "text", "text": "b"}]},
          {"role": "assistant", "content": "c", "refusal": null, "tool_calls": [],
           "reasoning_content": "r"}],
          "max_completion_tokens": 7, "logprobs": true, "top_logprobs": 0, "temperature": null,
          "chat_template_kwargs": {"enable_thinking": false}, "tools": [], "tool_choice": "none",
          "response_format": {"type": "text"}, "parallel_tool_calls": true, "stop": "x",
          "modalities": ["text"], "repetition_penalty": 1.0, "min_p": 0})");
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->messages.size(), 3u);
  EXPECT_EQ(request->messages[0].role, "system");
  EXPECT_EQ(request->messages[1].content, "a\nb");
  EXPECT_EQ(request->messages[2].reasoning, "r");
  EXPECT_EQ(request->params.max_tokens, 7);
  EXPECT_EQ(request->params.sampling.temperature, 1.0);
  EXPECT_TRUE(request->params.log_probs);
  EXPECT_EQ(request->template_arguments, R"({"enable_thinking":false})");
  EXPECT_FALSE(request->params.seed.has_value());
}

TEST(OpenaiRequest, DefaultsAreThoseOfTheApi) {
  const auto request = ParseChatRequest(Chat().dump());
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->params.sampling.temperature, 1.0);
  EXPECT_EQ(request->params.sampling.top_p, 1.0);
  EXPECT_EQ(request->params.sampling.top_k, 0);
  EXPECT_FALSE(request->params.sampling.draws_on_host());
  EXPECT_FALSE(request->params.echo || request->params.prompt_log_probs.has_value());
  EXPECT_EQ(request->params.n, 1);
  EXPECT_FALSE(request->params.max_tokens.has_value());
  EXPECT_FALSE(request->params.stream || request->params.log_probs);
  EXPECT_EQ(request->template_arguments, "");
}

TEST(OpenaiRequest, WrongTypesNameTheirField) {
  // Every field, with values of all types that it does not take.
  const json values[] = {true, 1.5, "text", json::array({true}), {{"a", 1}}};
  struct Field {
    const char* name;
    const char* right_types;  // b(oolean) n(umber) s(tring) l(ist) o(bject)
  };
  const Field common[] = {{"model", "s"},
                          {"max_tokens", ""},
                          {"temperature", "n"},
                          {"top_p", ""},
                          {"top_k", ""},
                          {"n", ""},
                          {"stream", "b"},
                          {"stop", "s"},
                          {"seed", ""},
                          {"stream_options", ""},
                          {"logit_bias", ""},
                          {"presence_penalty", "n"},
                          {"frequency_penalty", "n"},
                          {"repetition_penalty", "n"},
                          {"min_p", ""},
                          {"prompt_logprobs", ""},
                          {"response_format", ""}};
  const char types[] = "bnslo";
  const auto check = [&](const Field& field, bool chat) {
    for (int i = 0; i < 5; ++i) {
      if (absl::StrContains(field.right_types, types[i])) continue;
      const json more = {{field.name, values[i]}};
      const auto [name, message] = chat ? ChatError(more) : CompletionError(more);
      EXPECT_TRUE(absl::StartsWith(name, field.name))
          << field.name << " " << more << " " << message;
      EXPECT_TRUE(absl::StartsWith(message, field.name)) << message;
    }
  };
  for (const Field& field : common) {
    check(field, false);
    check(field, true);
  }
  for (const Field& field :
       {Field{"prompt", "s"}, {"logprobs", ""}, {"best_of", ""}, {"echo", "b"}, {"suffix", ""}}) {
    check(field, false);
  }
  for (const Field& field : {Field{"messages", ""},
                             {"logprobs", "b"},
                             {"top_logprobs", ""},
                             {"tools", ""},
                             {"tool_choice", ""},
                             {"chat_template_kwargs", "o"},
                             {"max_completion_tokens", ""},
                             {"functions", ""}}) {
    check(field, true);
  }
}

TEST(OpenaiRequest, ValuesOutOfRangeNameTheirField) {
  json many = json::object();
  for (int i = 0; i < 1025; ++i) many[absl::StrCat(i)] = 1;
  const std::pair<json, const char*> cases[] = {
      {{{"max_tokens", 0}}, "max_tokens"},
      {{{"max_tokens", -3}}, "max_tokens"},
      {{{"max_tokens", 18446744073709551615u}}, "max_tokens"},
      {{{"temperature", -0.1}}, "temperature"},
      {{{"temperature", 1e300}}, "temperature"},
      {{{"top_p", 0}}, "top_p"},
      {{{"top_p", 1.1}}, "top_p"},
      {{{"top_k", -2}}, "top_k"},
      {{{"n", 0}}, "n"},
      {{{"n", 100000}}, "n"},
      {{{"n", 600}, {"prompt", {"a", "b"}}}, "n"},
      {{{"stop", std::vector<std::string>(33, "a")}}, "stop"},
      {{{"stop_token_ids", std::vector<int>(33, 1)}}, "stop_token_ids"},
      {{{"stop_token_ids", {-1}}}, "stop_token_ids"},
      {{{"ignore_eos", 1}}, "ignore_eos"},
      {{{"return_token_ids", "yes"}}, "return_token_ids"},
      {{{"min_tokens", 1}}, "min_tokens"},
      {{{"skip_special_tokens", false}}, "skip_special_tokens"},
      {{{"include_stop_str_in_output", true}}, "include_stop_str_in_output"},
      {{{"prompt_logprobs", 21}}, "prompt_logprobs"},
      {{{"prompt_logprobs", -1}}, "prompt_logprobs"},
      {{{"prompt_logprobs", 0}, {"stream", true}}, "prompt_logprobs"},
      {{{"add_special_tokens", false}}, "add_special_tokens"},
      {{{"stop", ""}}, "stop"},
      {{{"stop", {"a", 1}}}, "stop"},
      {{{"logprobs", 21}}, "logprobs"},
      {{{"logprobs", -1}}, "logprobs"},
      {{{"best_of", 2}}, "best_of"},
      {{{"suffix", "s"}}, "suffix"},
      {{{"logit_bias", {{"5", 101}}}}, "logit_bias"},
      {{{"logit_bias", {{"five", 1}}}}, "logit_bias"},
      {{{"logit_bias", {{"-5", 1}}}}, "logit_bias"},
      {{{"logit_bias", {{"05", 1}}}}, "logit_bias"},
      {{{"logit_bias", {{"5", "1"}}}}, "logit_bias"},
      {{{"logit_bias", many}}, "logit_bias"},
      {{{"presence_penalty", 2.5}}, "presence_penalty"},
      {{{"frequency_penalty", -2.5}}, "frequency_penalty"},
      {{{"repetition_penalty", 0}}, "repetition_penalty"},
      {{{"min_p", 1.5}}, "min_p"},
      {{{"stream_options", {{"include_usage", true}}}}, "stream_options"},
      {{{"stream", true}, {"stream_options", {{"include_usage", 1}}}},
       "stream_options.include_usage"},
      {{{"prompt", json::array()}}, "prompt"},
      {{{"prompt", {1, -2}}}, "prompt"},
      {{{"prompt", {1, 2.5}}}, "prompt"},
      {{{"prompt", {1, 5000000000}}}, "prompt"},
      {{{"prompt", json::array({{1}, json::array()})}}, "prompt[1]"},
      {{{"prompt", nullptr}}, "prompt"},
      {{{"no_such_field", 1}}, "no_such_field"},
  };
  for (const auto& [more, field] : cases) EXPECT_EQ(CompletionError(more).first, field) << more;
  EXPECT_EQ(CompletionError({{"max_tokens", 0}}).second,
            "max_tokens is 0, which is only for echo=true or prompt_logprobs");
  EXPECT_EQ(CompletionError({{"presence_penalty", 2.5}}).second,
            "presence_penalty is 2.5, must be from -2 to 2");
  EXPECT_EQ(CompletionError({{"logit_bias", {{"five", 1}}}}).second,
            "logit_bias has the key \"five\", keys must be token ids");
  EXPECT_EQ(CompletionError({{"logit_bias", {{"5", 101}}}}).second,
            "logit_bias has 101 for token 5, must be a number from -100 to 100");
}

TEST(OpenaiRequest, ChatsThatCannotBeNameTheirField) {
  const auto message = [](const json& fields) {
    json full = {{"role", "user"}, {"content", "x"}};
    full.update(fields);
    return json{{"messages", json::array({{{"role", "user"}, {"content", "x"}}, full})}};
  };
  const std::pair<json, const char*> cases[] = {
      {{{"messages", json::array()}}, "messages"},
      {{{"messages", json::array({"hello"})}}, "messages[0]"},
      {message({{"role", "tool"}}), "messages[1].role"},
      {message({{"role", "king"}}), "messages[1].role"},
      {message({{"role", 5}}), "messages[1].role"},
      {message({{"content", nullptr}}), "messages[1].content"},
      {message({{"content", 5}}), "messages[1].content"},
      {message({{"content", {"x"}}}), "messages[1].content[0]"},
      {message({{"content", {{{"type", "image_url"}, {"image_url", {{"url", "u"}}}}}}}),
       "messages[1].content[0].type"},
      {message({{"content", {{{"type", "text"}, {"text", 5}}}}}), "messages[1].content[0].text"},
      {message({{"tool_calls", {{{"id", "1"}}}}}), "messages[1].tool_calls"},
      {message({{"colour", "red"}}), "messages[1].colour"},
      {{{"tools", {{{"type", "function"}}}}}, "tools"},
      {{{"tool_choice", "required"}}, "tool_choice"},
      {{{"response_format", {{"type", "json_object"}}}}, "response_format"},
      {{{"chat_template", "{{ messages }}"}}, "chat_template"},
      {{{"add_generation_prompt", false}}, "add_generation_prompt"},
      {{{"continue_final_message", true}}, "continue_final_message"},
      {{{"top_logprobs", 2}}, "top_logprobs"},
      {{{"logprobs", true}, {"top_logprobs", 21}}, "top_logprobs"},
      {{{"max_tokens", 0}}, "max_tokens"},
      {{{"echo", true}}, "echo"},
      {{{"max_tokens", 5}, {"max_completion_tokens", 6}}, "max_completion_tokens"},
      {{{"chat_template_kwargs", {{"enable_thinking", "no"}}}},
       "chat_template_kwargs.enable_thinking"},
      {{{"prompt", "x"}}, "prompt"},
  };
  for (const auto& [more, field] : cases) EXPECT_EQ(ChatError(more).first, field) << more;
}

TEST(OpenaiRequest, BrokenJsonIsSaidWithItsPlace) {
  for (const char* body :
       {"", "{", "[]", "5", "null", "{\"a\":}", "{\"prompt\": \"\xFF\"}",
        "{\"temperature\": 1e999}", "{} {}", "{\"prompt\": \"x\"", "{\"a\": \"\\ud800\"}"}) {
    const auto [field, message] = ErrorOf(ParseCompletionRequest(body));
    EXPECT_TRUE(absl::StartsWith(message, "the request")) << body << ": " << message;
  }
}

TEST(OpenaiRequest, DeepNestingIsRefused) {
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string body = "{\"prompt\": ";
    for (int i = 0; i < 500000; ++i) body += bracket;
    EXPECT_TRUE(absl::StrContains(ErrorOf(ParseCompletionRequest(body)).second, "nested"));
  }
  // Brackets inside a string are not nesting.
  const std::string text = "\\\"[[[[" + std::string(1000, '{');
  EXPECT_TRUE(ParseCompletionRequest(Completion({{"prompt", text}}).dump()).ok());
}

}  // namespace
}  // namespace tritonrl
