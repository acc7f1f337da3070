#include "base/endpoint/message.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

using Json = nlohmann::json;

constexpr size_t kMaxErrorText = 300;

std::string Text(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

int64_t Number(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_number() ? member->get<int64_t>() : 0;
}

// The text of a message's content: a string, a list of parts with "text", or null, as of a response
// that was filtered or that ended in its reasoning. Nullopt: another type.
std::optional<std::string> ContentText(const Json& content) {
  if (content.is_null()) return "";
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return std::nullopt;
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object()) return std::nullopt;
    text += Text(part, "text");
  }
  return text;
}

absl::StatusOr<EndpointChoice> ParseChatChoice(const Json& choice) {
  EndpointChoice parsed;
  const auto message = choice.find("message");
  if (message == choice.end() || !message->is_object()) {
    return absl::DataLossError("the reply has no message");
  }
  // DeepSeek and vLLM call it reasoning_content, OpenRouter and newer vLLM reasoning.
  parsed.reasoning = Text(*message, "reasoning_content");
  if (parsed.reasoning.empty()) parsed.reasoning = Text(*message, "reasoning");
  const auto content = message->find("content");
  std::optional<std::string> text = ContentText(content == message->end() ? Json() : *content);
  if (!text.has_value() && parsed.reasoning.empty()) {
    return absl::DataLossError("the reply has no message content");
  }
  parsed.text = std::move(text).value_or("");
  return parsed;
}

absl::StatusOr<EndpointChoice> ParseChoice(const EndpointRequest& request, const Json& choice) {
  if (!choice.is_object()) return absl::DataLossError("a choice of the reply is no object");
  EndpointChoice parsed;
  if (request.chat()) {
    absl::StatusOr<EndpointChoice> chat = ParseChatChoice(choice);
    if (!chat.ok()) return chat.status();
    parsed = *std::move(chat);
  } else {
    const auto text = choice.find("text");
    if (text == choice.end() || !text->is_string()) {
      return absl::DataLossError("a choice of the reply has no text");
    }
    parsed.text = text->get<std::string>();
  }
  parsed.finish_reason = Text(choice, "finish_reason");
  return parsed;
}

// The usage that a reply reports; all zero if it has none.
EndpointUsage ReportedUsage(const Json& reply) {
  const auto usage = reply.find("usage");
  if (usage == reply.end() || !usage->is_object() || !usage->contains("completion_tokens")) {
    return {};
  }
  return {.prompt_tokens = Number(*usage, "prompt_tokens"),
          .completion_tokens = Number(*usage, "completion_tokens"),
          .reported = true};
}

EndpointUsage UsageOf(const EndpointRequest& request, const Json& reply,
                      const std::vector<EndpointChoice>& choices) {
  if (const EndpointUsage reported = ReportedUsage(reply); reported.reported) return reported;
  int64_t bytes = 0;
  for (const EndpointChoice& choice : choices)
    bytes += choice.text.size() + choice.reasoning.size();
  return {.prompt_tokens = request.prompt_bytes() / kBytesPerToken,
          .completion_tokens = bytes / kBytesPerToken};
}

}  // namespace

int64_t EndpointRequest::prompt_bytes() const {
  int64_t bytes = static_cast<int64_t>(prompt.size());
  for (const EndpointMessage& message : messages) bytes += message.content.size();
  return bytes;
}

absl::StatusOr<std::string> RequestBody(const EndpointRequest& request) {
  if (request.model.empty()) return absl::InvalidArgumentError("the request names no model");
  Json body = {{"model", request.model}};
  if (request.chat()) {
    body["messages"] = Json::array();
    for (const EndpointMessage& message : request.messages) {
      body["messages"].push_back({{"role", message.role}, {"content", message.content}});
    }
  } else if (!request.prompt.empty()) {
    body["prompt"] = request.prompt;
  } else {
    return absl::InvalidArgumentError("the request has neither messages nor a prompt");
  }
  if (request.temperature.has_value()) body["temperature"] = *request.temperature;
  if (request.top_p.has_value()) body["top_p"] = *request.top_p;
  if (request.max_tokens > 0) body["max_tokens"] = request.max_tokens;
  if (request.n != 1) body["n"] = request.n;
  if (request.seed.has_value()) body["seed"] = *request.seed;
  if (!request.stop.empty()) body["stop"] = request.stop;
  if (!request.extra.empty()) {
    const Json extra = Json::parse(request.extra, nullptr, /*allow_exceptions=*/false);
    if (!extra.is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the request's extra members are no JSON object: ", request.extra));
    }
    body.update(extra);
  }
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

EndpointUsage UsageOfBadReply(const std::string& body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? ReportedUsage(json) : EndpointUsage();
}

absl::StatusOr<EndpointResponse> ParseReply(const EndpointRequest& request, std::string body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("the reply is not JSON");
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->empty()) {
    std::string code;
    // Some proxies answer 200 with an error in the body.
    const std::string error = json.contains("error") ? ErrorText(body, &code) : "";
    return absl::DataLossError(
        absl::StrCat("the reply has no choices", error.empty() ? "" : ": ", error));
  }
  EndpointResponse response;
  for (const Json& choice : *choices) {
    absl::StatusOr<EndpointChoice> parsed = ParseChoice(request, choice);
    if (!parsed.ok()) return parsed.status();
    response.choices.push_back(*std::move(parsed));
  }
  response.usage = UsageOf(request, json, response.choices);
  response.model = Text(json, "model");
  response.raw = std::move(body);
  return response;
}

std::string ErrorText(const std::string& body, std::string* code) {
  code->clear();
  std::string text = body;
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) {
    const auto error = json.find("error");
    if (error != json.end() && error->is_object()) {
      text = Text(*error, "message");
      *code = Text(*error, "code");
      if (code->empty()) *code = Text(*error, "type");
    } else if (error != json.end() && error->is_string()) {
      text = error->get<std::string>();
    } else if (json.contains("message")) {
      text = Text(json, "message");
    } else if (json.contains("detail")) {
      text = Text(json, "detail");
    }
  }
  text = absl::StrReplaceAll(RepairUtf8(text), {{"\n", " "}, {"\r", " "}});
  if (text.size() > kMaxErrorText) text = RepairUtf8(text.substr(0, kMaxErrorText - 3)) + "...";
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string RequestUrl(const std::string& url, const EndpointRequest& request) {
  absl::string_view base = url;
  while (absl::ConsumeSuffix(&base, "/")) {
  }
  if (!absl::ConsumeSuffix(&base, "/chat/completions")) absl::ConsumeSuffix(&base, "/completions");
  return absl::StrCat(base, request.chat() ? "/chat/completions" : "/completions");
}

}  // namespace tritonrl
