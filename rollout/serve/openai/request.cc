#include "rollout/serve/openai/request.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "rollout/serve/openai/api_json.h"
#include "rollout/serve/openai/generation_params.h"

namespace tritonrl {
namespace {

absl::StatusOr<std::string> ReadRole(JsonFields* fields) {
  std::string role;
  RETURN_IF_ERROR(fields->Read("role", &role));
  if (role == "developer") return "system";
  if (role == "system" || role == "user" || role == "assistant") return role;
  if (role == "tool" || role == "function") {
    return FieldError(fields->Name("role"),
                      absl::StrCat("is \"", role, "\": this server has no tools"));
  }
  return FieldError(fields->Name("role"), "must be system, user or assistant");
}

// Reads a text, or a list of parts of type text, which are joined by newlines. An assistant's
// message may have no content or null, as clients send back completions without text: it is empty.
absl::StatusOr<std::string> ReadContent(JsonFields* fields, bool optional) {
  const nlohmann::json* json = fields->Find("content");
  const std::string name = fields->Name("content");
  if (json == nullptr && optional) return std::string();
  if (json == nullptr) return FieldError(name, "is missing");
  if (json->is_string()) return json->get<std::string>();
  if (!json->is_array()) {
    return FieldError(
        name, absl::StrCat("must be a string or a list of parts, not ", JsonTypeName(*json)));
  }
  std::string content;
  for (size_t i = 0; i < json->size(); ++i) {
    const nlohmann::json& entry = (*json)[i];
    const std::string part_name = absl::StrCat(name, "[", i, "]");
    if (!entry.is_object()) {
      return FieldError(part_name, absl::StrCat("must be an object, not ", JsonTypeName(entry)));
    }
    JsonFields part(entry, part_name + ".");
    std::string type;
    RETURN_IF_ERROR(part.Read("type", &type));
    if (type != "text") {
      return FieldError(part.Name("type"), "must be \"text\": this server reads text alone");
    }
    const nlohmann::json* text = part.Find("text");
    if (text == nullptr || !text->is_string()) {
      return FieldError(part.Name("text"), "must be a string");
    }
    if (i > 0) content += "\n";
    content += text->get_ref<const std::string&>();
  }
  return content;
}

absl::StatusOr<ChatMessage> ReadMessage(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object()) {
    return FieldError(name, absl::StrCat("must be an object, not ", JsonTypeName(json)));
  }
  JsonFields fields(json, name + ".");
  ChatMessage message;
  ASSIGN_OR_RETURN(message.role, ReadRole(&fields));
  for (const char* tool : {"tool_calls", "function_call", "tool_call_id", "audio"}) {
    RETURN_IF_ERROR(
        fields.Refuse(tool, {nlohmann::json::array()}, "is not known: this server has text alone"));
  }
  const bool optional = message.role == "assistant";
  ASSIGN_OR_RETURN(message.content, ReadContent(&fields, optional));
  if (fields.Find("reasoning_content") != nullptr) {
    message.reasoning.emplace();
    RETURN_IF_ERROR(fields.Read("reasoning_content", &*message.reasoning));
  }
  // Fields of earlier completions that clients send back, and the speaker's name, which no template
  // shows.
  fields.Ignore({"name", "refusal", "annotations", "reasoning"});
  RETURN_IF_ERROR(fields.RefuseUnknown());
  return message;
}

absl::Status ReadMessages(JsonFields* fields, std::vector<ChatMessage>* messages) {
  const nlohmann::json* json = fields->Find("messages");
  if (json == nullptr) return FieldError("messages", "is missing");
  if (!json->is_array()) {
    return FieldError("messages", absl::StrCat("must be a list, not ", JsonTypeName(*json)));
  }
  if (json->empty()) return FieldError("messages", "is empty");
  for (size_t i = 0; i < json->size(); ++i) {
    ASSIGN_OR_RETURN(ChatMessage message,
                     ReadMessage((*json)[i], absl::StrCat("messages[", i, "]")));
    messages->push_back(std::move(message));
  }
  return absl::OkStatus();
}

absl::Status ReadTemplateArguments(JsonFields* fields, std::string* arguments) {
  const nlohmann::json* json = fields->Find("chat_template_kwargs");
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_object()) {
    return FieldError("chat_template_kwargs",
                      absl::StrCat("must be an object, not ", JsonTypeName(*json)));
  }
  // Other variables are passed to the template unchecked.
  JsonFields known(*json, "chat_template_kwargs.");
  bool enable_thinking = true;
  RETURN_IF_ERROR(known.Read("enable_thinking", &enable_thinking));
  *arguments = JsonText(*json);
  return absl::OkStatus();
}

// Refuses fields that would change the prompt made from the messages.
absl::Status RefuseOtherTemplates(JsonFields* fields) {
  RETURN_IF_ERROR(fields->Refuse("add_generation_prompt", {true},
                                 "must be true: the model writes the assistant's next message"));
  for (const char* name : {"continue_final_message", "add_special_tokens", "echo"}) {
    RETURN_IF_ERROR(fields->Refuse(name, {false},
                                   "must be false; with /v1/completions a prompt can be any text"));
  }
  return fields->Refuse("chat_template", {},
                        "cannot be given: the server has its own (its flag --chat_template)");
}

absl::Status RefuseTools(JsonFields* fields) {
  const char* const kNoTools = "cannot be used: this server has no tools";
  for (const char* name : {"tools", "functions"}) {
    RETURN_IF_ERROR(fields->Refuse(name, {nlohmann::json::array()}, kNoTools));
  }
  for (const char* name : {"tool_choice", "function_call"}) {
    RETURN_IF_ERROR(fields->Refuse(name, {"none", "auto"}, kNoTools));
  }
  RETURN_IF_ERROR(
      fields->Refuse("modalities", {{"text"}}, "must be [\"text\"]: this server has text alone"));
  RETURN_IF_ERROR(fields->Refuse("audio", {}, "is not known: this server has text alone"));
  RETURN_IF_ERROR(fields->Refuse("web_search_options", {}, kNoTools));
  fields->Ignore({"parallel_tool_calls"});
  return absl::OkStatus();
}

// A prompt of token ids, which cannot be empty.
absl::StatusOr<std::vector<int32_t>> ReadPromptIds(const nlohmann::json& list,
                                                   const std::string& name) {
  if (list.empty()) return FieldError(name, "is empty");
  return ReadIds(list, name);
}

absl::Status ReadPrompts(JsonFields* fields, std::vector<CompletionRequest::Prompt>* prompts) {
  const nlohmann::json* json = fields->Find("prompt");
  if (json == nullptr) return FieldError("prompt", "is missing");
  if (json->is_string()) {
    prompts->push_back(json->get<std::string>());
    return absl::OkStatus();
  }
  if (!json->is_array()) {
    return FieldError("prompt", absl::StrCat("must be a string, a list of strings, a list of token "
                                             "ids or a list of such lists, not ",
                                             JsonTypeName(*json)));
  }
  if (json->empty()) return FieldError("prompt", "is empty");
  if (json->front().is_number()) {
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, ReadPromptIds(*json, "prompt"));
    prompts->push_back(std::move(ids));
    return absl::OkStatus();
  }
  if (json->size() > kMaxChoices) {
    return FieldError("prompt", absl::StrCat("holds ", json->size(), " prompts, at most ",
                                             kMaxChoices, " are allowed"));
  }
  for (size_t i = 0; i < json->size(); ++i) {
    const nlohmann::json& entry = (*json)[i];
    const std::string name = absl::StrCat("prompt[", i, "]");
    if (entry.is_string()) {
      prompts->push_back(entry.get<std::string>());
    } else if (entry.is_array()) {
      ASSIGN_OR_RETURN(std::vector<int32_t> ids, ReadPromptIds(entry, name));
      prompts->push_back(std::move(ids));
    } else {
      return FieldError(
          name, absl::StrCat("must be a string or a list of token ids, not ", JsonTypeName(entry)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompletionRequest> ParseCompletionRequest(absl::string_view body) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(body));
  CompletionRequest request;
  GenerationParams& params = request.params;
  JsonFields fields(json);
  RETURN_IF_ERROR(ReadGenerationParams(&fields, &params));
  RETURN_IF_ERROR(ReadPrompts(&fields, &request.prompts));
  if (static_cast<int64_t>(request.prompts.size()) * params.n > kMaxChoices) {
    return FieldError("n",
                      absl::StrCat("times ", request.prompts.size(), " prompts is more than the ",
                                   kMaxChoices, " answers that one request may ask for"));
  }
  std::optional<int64_t> log_probs;
  RETURN_IF_ERROR(fields.Read("logprobs", 0, kMaxTopLogProbs, &log_probs));
  params.log_probs = log_probs.has_value();
  params.top_log_probs = static_cast<int32_t>(log_probs.value_or(0));
  RETURN_IF_ERROR(fields.Read("echo", &params.echo));
  RETURN_IF_ERROR(CheckPromptFields(params));
  RETURN_IF_ERROR(fields.Refuse(
      "best_of", {params.n},
      absl::StrCat("must be n, which is ", params.n, ": this server returns all that it draws")));
  RETURN_IF_ERROR(
      fields.Refuse("suffix", {""}, "must be empty: the model completes texts at their end alone"));
  RETURN_IF_ERROR(fields.Refuse("add_special_tokens", {true},
                                "must be true: give token ids for a prompt without them"));
  RETURN_IF_ERROR(fields.RefuseUnknown());
  return request;
}

absl::StatusOr<ChatRequest> ParseChatRequest(absl::string_view body) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(body));
  ChatRequest request;
  GenerationParams& params = request.params;
  JsonFields fields(json);
  RETURN_IF_ERROR(ReadGenerationParams(&fields, &params));
  RETURN_IF_ERROR(ReadMaxTokens(&fields, "max_completion_tokens", &params));
  RETURN_IF_ERROR(ReadMessages(&fields, &request.messages));
  RETURN_IF_ERROR(fields.Read("logprobs", &params.log_probs));
  std::optional<int64_t> top;
  RETURN_IF_ERROR(fields.Read("top_logprobs", 0, kMaxTopLogProbs, &top));
  if (top.value_or(0) > 0 && !params.log_probs) {
    return FieldError("top_logprobs", "is only for logprobs=true");
  }
  params.top_log_probs = static_cast<int32_t>(top.value_or(0));
  RETURN_IF_ERROR(CheckPromptFields(params));
  RETURN_IF_ERROR(ReadTemplateArguments(&fields, &request.template_arguments));
  RETURN_IF_ERROR(RefuseOtherTemplates(&fields));
  RETURN_IF_ERROR(RefuseTools(&fields));
  RETURN_IF_ERROR(fields.RefuseUnknown());
  return request;
}

}  // namespace tritonrl
