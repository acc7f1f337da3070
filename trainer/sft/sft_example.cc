#include "trainer/sft/sft_example.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/records/lenient_json.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr const char* kKnownForms =
    "\"prompt\" and \"response\"; \"messages\"; \"prompt\" and \"completion\"; \"conversations\" "
    "(ShareGPT); or \"instruction\" and \"output\" (Alpaca)";

const char* Wanted(SftFormat format) {
  switch (format) {
    case SftFormat::kPromptResponse:
      return "\"prompt\" and \"response\", each a string or a list of messages";
    case SftFormat::kMessages:
      return "\"messages\", a list of {\"role\", \"content\"} that ends with the assistant's turn";
    case SftFormat::kPromptCompletion:
      return "\"prompt\" and \"completion\", each a string or a list of messages";
    case SftFormat::kShareGpt:
      return "\"conversations\", a list of {\"from\", \"value\"} that ends with the assistant's "
             "turn";
    case SftFormat::kAlpaca:
      return "\"instruction\" and \"output\", and if need be \"input\" and \"system\", all strings";
  }
  return "";
}

// The role that a name stands for in the usual data sets; "" for an unknown one.
std::string RoleOf(absl::string_view name) {
  static const auto* const kRoles = new absl::flat_hash_map<std::string, std::string>{
      {"system", "system"},     {"developer", "developer"}, {"user", "user"},
      {"human", "user"},        {"assistant", "assistant"}, {"gpt", "assistant"},
      {"chatgpt", "assistant"}, {"model", "assistant"},     {"tool", "tool"}};
  const auto it = kRoles->find(name);
  return it == kRoles->end() ? "" : it->second;
}

absl::Status Bad(const std::string& field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the field \"", field, "\" ", what));
}

// The value of field `name`; null if it is missing, as Parquet writes an optional field.
const Json& FieldOf(const Json& object, const char* name) {
  static const Json kNull;
  const auto it = object.find(name);
  return it == object.end() ? kNull : *it;
}

// Reads the record's fields. `path` arguments name fields in messages, as in messages[2].content.
class Parser {
 public:
  Parser(const LenientJson& record, SftExample* example)
      : json_(record.json), repaired_(record.repaired), example_(*example) {}

  absl::Status Parse(SftFormat format);

 private:
  absl::StatusOr<std::string> Text(const Json& value, const std::string& path) const;
  absl::StatusOr<std::string> Required(const char* name) const;
  absl::StatusOr<std::string> Content(const Json& value, const std::string& path) const;
  absl::Status AddMessage(const Json& value, const std::string& path);
  absl::Status AddMessages(const char* name);
  // A field that is a text, which becomes a message of `role`, or a list of messages.
  absl::Status AddSide(const char* name, const char* role);
  absl::Status AddAlpaca();
  absl::Status AddSystem();
  absl::Status CheckConversation() const;
  void Add(const char* role, std::string content) {
    example_.messages.push_back({role, std::move(content), std::nullopt});
  }

  const Json& json_;
  const bool repaired_;
  SftExample& example_;
};

absl::StatusOr<std::string> Parser::Text(const Json& value, const std::string& path) const {
  if (!value.is_string()) return Bad(path, "is no string");
  std::string text = value.get<std::string>();
  if (repaired_ && absl::StrContains(text, kHalfSurrogate)) {
    return Bad(path, "holds half of a surrogate pair (\\ud800 to \\udfff), which is no character");
  }
  return text;
}

absl::StatusOr<std::string> Parser::Required(const char* name) const {
  if (json_.find(name) == json_.end()) return Bad(name, "is missing");
  return Text(json_[name], name);
}

// A text, or a list of parts {"type": "text", "text": ...}, which are joined.
absl::StatusOr<std::string> Parser::Content(const Json& value, const std::string& path) const {
  if (!value.is_array()) return Text(value, path);
  std::string joined;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string part = absl::StrCat(path, "[", i, "]");
    const Json& text = value[i].is_object() ? FieldOf(value[i], "text") : value[i];
    if (value[i].is_object() && FieldOf(value[i], "type") != "text") {
      return Bad(part, "is no part of type \"text\"; other parts cannot be trained on");
    }
    ASSIGN_OR_RETURN(const std::string piece, Text(text, part));
    joined += piece;
  }
  return joined;
}

absl::Status Parser::AddMessage(const Json& value, const std::string& path) {
  if (!value.is_object()) return Bad(path, "is no object");
  const bool share_gpt = value.contains("from") && !value.contains("role");
  const char* const role_field = share_gpt ? "from" : "role";
  const char* const text_field = share_gpt ? "value" : "content";
  for (const char* const field : {role_field, text_field}) {
    if (!value.contains(field)) return Bad(absl::StrCat(path, ".", field), "is missing");
  }
  const std::string role_path = absl::StrCat(path, ".", role_field);
  ASSIGN_OR_RETURN(const std::string name, Text(value[role_field], role_path));
  SftMessage message;
  message.role = RoleOf(name);
  if (message.role.empty()) {
    return Bad(role_path, absl::StrCat("is \"", name,
                                       "\"; it must be system, developer, user, assistant or tool "
                                       "(human and gpt are known too)"));
  }
  const Json& calls = FieldOf(value, "tool_calls");
  if (!calls.is_null() && !calls.empty()) {
    return Bad(absl::StrCat(path, ".tool_calls"), "is not empty; calls cannot be trained on");
  }
  ASSIGN_OR_RETURN(message.content,
                   Content(value[text_field], absl::StrCat(path, ".", text_field)));
  for (const char* const field : {"reasoning_content", "reasoning", "thinking"}) {
    const Json& reasoning = FieldOf(value, field);
    if (message.role != "assistant" || reasoning.is_null() || reasoning == "") continue;
    ASSIGN_OR_RETURN(std::string text, Text(reasoning, absl::StrCat(path, ".", field)));
    if (absl::StripAsciiWhitespace(text).empty()) continue;
    message.reasoning = std::move(text);
    break;
  }
  example_.messages.push_back(std::move(message));
  return absl::OkStatus();
}

absl::Status Parser::AddMessages(const char* name) {
  if (json_.find(name) == json_.end()) return Bad(name, "is missing");
  const Json& list = json_[name];
  if (!list.is_array() || list.empty()) return Bad(name, "is no list of messages");
  for (size_t i = 0; i < list.size(); ++i) {
    RETURN_IF_ERROR(AddMessage(list[i], absl::StrCat(name, "[", i, "]")));
  }
  return absl::OkStatus();
}

absl::Status Parser::AddSide(const char* name, const char* role) {
  if (FieldOf(json_, name).is_array()) return AddMessages(name);
  ASSIGN_OR_RETURN(std::string text, Required(name));
  if (text.empty() && std::string(role) == "user") {
    return absl::InvalidArgumentError("the prompt is empty");
  }
  Add(role, std::move(text));
  return absl::OkStatus();
}

// A system text beside the conversation, as some data sets have it.
absl::Status Parser::AddSystem() {
  const Json& system = FieldOf(json_, "system");
  if (system.is_null() || system == "") return absl::OkStatus();
  ASSIGN_OR_RETURN(std::string text, Text(system, "system"));
  Add("system", std::move(text));
  return absl::OkStatus();
}

absl::Status Parser::AddAlpaca() {
  RETURN_IF_ERROR(AddSystem());
  const Json& history = FieldOf(json_, "history");  // pairs of earlier turns
  for (size_t i = 0; history.is_array() && i < history.size(); ++i) {
    const std::string path = absl::StrCat("history[", i, "]");
    if (!history[i].is_array() || history[i].size() != 2) return Bad(path, "is no pair of strings");
    ASSIGN_OR_RETURN(std::string question, Text(history[i][0], path + "[0]"));
    ASSIGN_OR_RETURN(std::string answer, Text(history[i][1], path + "[1]"));
    Add("user", std::move(question));
    Add("assistant", std::move(answer));
  }
  ASSIGN_OR_RETURN(std::string prompt, Required("instruction"));
  const Json& input = FieldOf(json_, "input");
  if (!input.is_null() && input != "") {
    ASSIGN_OR_RETURN(const std::string text, Text(input, "input"));
    absl::StrAppend(&prompt, prompt.empty() ? "" : "\n", text);
  }
  if (prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
  Add("user", std::move(prompt));
  ASSIGN_OR_RETURN(std::string output, Required("output"));
  Add("assistant", std::move(output));
  return absl::OkStatus();
}

absl::Status Parser::CheckConversation() const {
  if (example_.messages.back().role != "assistant") {
    return absl::InvalidArgumentError(absl::StrCat("the last turn has the role \"",
                                                   example_.messages.back().role,
                                                   "\" instead of \"assistant\""));
  }
  for (const SftMessage& message : example_.messages) {
    if (message.role != "assistant" && !message.content.empty()) return absl::OkStatus();
  }
  return absl::InvalidArgumentError("there is no text before the assistant's turn");
}

absl::Status Parser::Parse(SftFormat format) {
  switch (format) {
    case SftFormat::kPromptResponse:
    case SftFormat::kPromptCompletion:
      RETURN_IF_ERROR(AddSide("prompt", "user"));
      RETURN_IF_ERROR(
          AddSide(format == SftFormat::kPromptResponse ? "response" : "completion", "assistant"));
      break;
    case SftFormat::kMessages:
      RETURN_IF_ERROR(AddMessages("messages"));
      break;
    case SftFormat::kShareGpt: {
      RETURN_IF_ERROR(AddSystem());
      const size_t before = example_.messages.size();
      RETURN_IF_ERROR(AddMessages("conversations"));
      // The conversation's own system message wins.
      if (before == 1 && example_.messages[1].role == "system") {
        example_.messages.erase(example_.messages.begin());
      }
      break;
    }
    case SftFormat::kAlpaca:
      RETURN_IF_ERROR(AddAlpaca());
      break;
  }
  return CheckConversation();
}

}  // namespace

const std::vector<std::string>& SftFields() {
  static const auto* const kFields = new std::vector<std::string>{
      "prompt",      "response", "completion", "messages", "conversations",
      "instruction", "input",    "output",     "system",   "history"};
  return *kFields;
}

const char* SftFormatName(SftFormat format) {
  switch (format) {
    case SftFormat::kPromptResponse:
      return "prompt/response";
    case SftFormat::kMessages:
      return "messages";
    case SftFormat::kPromptCompletion:
      return "prompt/completion";
    case SftFormat::kShareGpt:
      return "ShareGPT";
    case SftFormat::kAlpaca:
      return "Alpaca";
  }
  return "";
}

absl::StatusOr<std::optional<SftFormat>> DetectSftFormat(absl::string_view text) {
  const absl::StatusOr<LenientJson> record = ParseLenientJson(text);
  if (!record.ok() || !record->json.is_object()) return std::optional<SftFormat>();
  const auto has = [&](const char* name) { return record->json.contains(name); };
  if (has("prompt") && has("response")) return SftFormat::kPromptResponse;
  if (has("messages")) return SftFormat::kMessages;
  if (has("conversations")) return SftFormat::kShareGpt;
  if (has("prompt") && has("completion")) return SftFormat::kPromptCompletion;
  if (has("instruction")) return SftFormat::kAlpaca;
  // One of the two fields: the error about the other one says more than a list of forms.
  if (has("prompt") || has("response")) return SftFormat::kPromptResponse;
  std::vector<std::string> names;
  for (const auto& [name, value] : record->json.items()) {
    if (names.size() < 12) names.push_back(absl::StrCat("\"", name, "\""));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the fields ", names.empty() ? "of an empty object" : absl::StrJoin(names, ", "),
                   " are no known form of example (wanted: ", kKnownForms, ")"));
}

absl::StatusOr<SftExample> ParseSftExample(absl::string_view text, SftFormat format) {
  SftExample example;
  const absl::Status status = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const LenientJson record, ParseLenientJson(text));
    if (!record.json.is_object()) return absl::InvalidArgumentError("this is no JSON object");
    return Parser(record, &example).Parse(format);
  }();
  if (status.ok()) return example;
  return absl::InvalidArgumentError(
      absl::StrCat(status.message(), " (wanted: one object with ", Wanted(format), ")"));
}

}  // namespace tritonrl
