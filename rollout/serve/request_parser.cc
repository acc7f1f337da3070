#include "rollout/serve/request_parser.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "rollout/serve/openai/api_json.h"

namespace tritonrl {

absl::Status RequestParser::CheckModelName(const std::string& name) const {
  if (name.empty() || name == model_.name) return absl::OkStatus();
  return WithErrorCode(
      absl::NotFoundError(absl::StrCat("the model \"", name.substr(0, 100),
                                       "\" is not here; this server has \"", model_.name, "\"")),
      "model_not_found");
}

absl::StatusOr<std::vector<CompletionSpec::Prompt>> RequestParser::ReadPrompts(
    bool chat, const std::string& body, GenerationParams* params) const {
  std::vector<CompletionSpec::Prompt> prompts;
  if (chat) {
    ASSIGN_OR_RETURN(ChatRequest request, ParseChatRequest(body));
    *params = std::move(request.params);
    RETURN_IF_ERROR(CheckModelName(params->model));
    absl::StatusOr<std::vector<int32_t>> ids = model_.chat.Encode(
        request.messages, /*add_generation_prompt=*/true, request.template_arguments);
    if (absl::IsInvalidArgument(ids.status())) {
      return FieldError("messages",
                        absl::StrCat("cannot become a prompt: ", Message(ids.status())));
    }
    RETURN_IF_ERROR(ids.status());
    prompts.push_back({.ids = *std::move(ids)});
    return prompts;
  }
  ASSIGN_OR_RETURN(CompletionRequest request, ParseCompletionRequest(body));
  *params = std::move(request.params);
  RETURN_IF_ERROR(CheckModelName(params->model));
  for (CompletionRequest::Prompt& prompt : request.prompts) {
    if (auto* given = std::get_if<std::vector<int32_t>>(&prompt)) {
      prompts.push_back({.ids = std::move(*given)});
      continue;
    }
    std::vector<int32_t> ids = model_.tokenizer.Encode(std::get<std::string>(prompt));
    const std::vector<int32_t>& begin = model_.begin_tokens;
    // A text that has them already does not get them twice.
    const bool add =
        ids.size() < begin.size() || !std::equal(begin.begin(), begin.end(), ids.begin());
    if (add) ids.insert(ids.begin(), begin.begin(), begin.end());
    prompts.push_back({std::move(ids), add ? begin.size() : 0});
  }
  return prompts;
}

absl::StatusOr<int> RequestParser::CompletionTokens(size_t prompt_tokens,
                                                    const GenerationParams& params) const {
  const int64_t prompt = static_cast<int64_t>(prompt_tokens);
  const int64_t left = model_.context - prompt;
  const int64_t limit = limits_.max_tokens > 0 ? limits_.max_tokens : model_.context;
  if (params.max_tokens && *params.max_tokens > limit) {
    return FieldError("max_tokens",
                      absl::StrCat("is ", *params.max_tokens, ", this server's limit is ", limit));
  }
  const int64_t wanted = params.max_tokens ? *params.max_tokens : std::min(left, limit);
  if (left < (params.max_tokens == 0 ? 0 : 1) || wanted > left) {
    return WithErrorCode(
        absl::InvalidArgumentError(absl::StrCat(
            "the prompt of ", prompt, " tokens",
            params.max_tokens ? absl::StrCat(" and max_tokens ", wanted, " are") : " is",
            " too long: this model's context is ", model_.context, " tokens for both together")),
        "context_length_exceeded");
  }
  return static_cast<int>(wanted);
}

absl::Status RequestParser::AddStops(const GenerationParams& params, ParsedRequest* parsed) const {
  std::vector<int32_t>& ids = parsed->generation.sampling.stop_ids;
  if (!params.ignore_eos) ids = model_.stop_ids;
  for (const int32_t id : params.stop_token_ids) {
    RETURN_IF_ERROR(CheckId("stop_token_ids", id));
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) continue;
    ids.push_back(id);
    parsed->answer.asked_stop_ids.push_back(id);
  }
  parsed->answer.stop_ids = ids;
  parsed->answer.stop = params.stop;
  return absl::OkStatus();
}

void RequestParser::AddLogProbs(const GenerationParams& params, ParsedRequest* parsed) {
  GenerationSpec& generation = parsed->generation;
  CompletionSpec& answer = parsed->answer;
  answer.head.log_probs = params.log_probs;
  answer.head.top_log_probs = params.top_log_probs;
  answer.echo = params.echo;
  answer.prompt_log_probs = params.prompt_log_probs;
  // The engine's own log-probabilities are those of the model's distribution at temperatures 1, 0.
  const double temperature = params.sampling.temperature;
  if (params.log_probs && (params.top_log_probs > 0 || (temperature != 0 && temperature != 1))) {
    generation.top_log_probs = params.top_log_probs;
  }
  if (answer.EchoWithLogProbs() || params.prompt_log_probs) {
    generation.top_prompt_log_probs =
        std::max(params.prompt_log_probs.value_or(0), params.echo ? params.top_log_probs : 0);
  }
}

absl::Status RequestParser::CheckId(const char* field, int32_t id) const {
  if (id < model_.vocab_size) return absl::OkStatus();
  return FieldError(
      field, absl::StrCat("holds the id ", id, ", the model has ids below ", model_.vocab_size));
}

absl::StatusOr<ParsedRequest> RequestParser::Parse(bool chat, const std::string& body) {
  ParsedRequest parsed;
  GenerationParams& params = parsed.params;
  GenerationSpec& generation = parsed.generation;
  CompletionSpec& answer = parsed.answer;
  answer.arrival = absl::Now();
  answer.deadline = answer.arrival + limits_.timeout;
  ASSIGN_OR_RETURN(std::vector<CompletionSpec::Prompt> prompts, ReadPrompts(chat, body, &params));
  for (CompletionSpec::Prompt& prompt : prompts) {
    std::vector<int32_t>& ids = prompt.ids;
    if (ids.empty()) return FieldError(chat ? "messages" : "prompt", "is empty");
    for (const int32_t id : ids) RETURN_IF_ERROR(CheckId("prompt", id));
    answer.prompt_tokens += static_cast<int64_t>(ids.size());
    ASSIGN_OR_RETURN(const int max_tokens, CompletionTokens(ids.size(), params));
    if (params.return_token_ids) answer.head.prompts.push_back(ids);
    if (params.echo) answer.prompts.push_back(prompt);
    generation.prompts.push_back({std::move(ids), max_tokens});
  }
  generation.n = params.n;
  generation.sampling = params.sampling;
  for (const auto& [id, bias] : params.sampling.logit_bias) {
    RETURN_IF_ERROR(CheckId("logit_bias", id));
  }
  RETURN_IF_ERROR(AddStops(params, &parsed));
  AddLogProbs(params, &parsed);
  const uint64_t number = next_request_++;
  const uint64_t start = static_cast<uint64_t>(absl::ToUnixNanos(start_));
  generation.seed = params.seed ? *params.seed : MixKeys({start, number});
  generation.wake_on_tokens = params.stream || !params.stop.empty();
  answer.head.chat = chat;
  answer.head.id = absl::StrFormat("%s-%016x%08x", chat ? "chatcmpl" : "cmpl", start, number);
  answer.head.created = absl::ToUnixSeconds(answer.arrival);
  answer.head.model = model_.name;
  answer.head.token_ids = params.return_token_ids;
  answer.head.n = params.n;
  answer.choices = static_cast<int>(generation.prompts.size()) * params.n;
  answer.stream_usage = params.include_usage;
  return parsed;
}

}  // namespace tritonrl
