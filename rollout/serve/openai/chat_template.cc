#include "rollout/serve/openai/chat_template.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

constexpr absl::string_view kThinkEnd = "</think>";

// chat_template of a tokenizer_config.json: a text, or the entry "default" of a list of {"name",
// "template"}. Empty if there is none.
std::string TemplateOf(const nlohmann::json& config) {
  const auto it = config.find("chat_template");
  if (it == config.end()) return "";
  if (it->is_string()) return it->get<std::string>();
  if (!it->is_array()) return "";
  for (const nlohmann::json& entry : *it) {
    if (entry.value("name", "") == "default") return entry.value("template", "");
  }
  return "";
}

absl::StatusOr<std::string> ReadJinja(const std::string& model_dir) {
  const std::string alone = JoinPath(model_dir, "chat_template.jinja");
  if (FileExists(alone)) return ReadFile(alone);
  const std::string path = JoinPath(model_dir, "tokenizer_config.json");
  if (!FileExists(path)) return "";
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    return TemplateOf(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, " cannot be read: ", error.what()));
  }
}

absl::string_view StripNewlines(absl::string_view text) {
  while (absl::ConsumePrefix(&text, "\n")) continue;
  while (absl::ConsumeSuffix(&text, "\n")) continue;
  return text;
}

absl::string_view StripFrontNewlines(absl::string_view text) {
  while (absl::ConsumePrefix(&text, "\n")) continue;
  return text;
}

const char* RoleName(ChatMessage::Role role) {
  switch (role) {
    case ChatMessage::Role::kSystem:
      return "system";
    case ChatMessage::Role::kUser:
      return "user";
    default:
      return "assistant";
  }
}

// An assistant's turn, split as in Qwen3's template: the thought is the text between the last
// <think> and the first </think>, the answer is the text after the last </think>.
struct AssistantTurn {
  absl::string_view thought;
  absl::string_view answer;
};

AssistantTurn TakeApart(const ChatMessage& message) {
  const absl::string_view content = message.content;
  if (message.reasoning) return {*message.reasoning, content};
  const size_t first_end = content.find(kThinkEnd);
  if (first_end == absl::string_view::npos) return {"", content};
  absl::string_view thought = content.substr(0, first_end);
  const size_t begin = thought.rfind("<think>");
  if (begin != absl::string_view::npos) thought.remove_prefix(begin + 7);
  const absl::string_view answer = content.substr(content.rfind(kThinkEnd) + kThinkEnd.size());
  return {StripNewlines(thought), StripFrontNewlines(answer)};
}

// Index of the last user's message that is not a tool's answer; of the last message if there is
// none.
size_t LastQuery(const std::vector<ChatMessage>& messages) {
  for (size_t i = messages.size(); i-- > 0;) {
    const ChatMessage& message = messages[i];
    if (message.role == ChatMessage::Role::kUser &&
        !(absl::StartsWith(message.content, "<tool_response>") &&
          absl::EndsWith(message.content, "</tool_response>"))) {
      return i;
    }
  }
  return messages.size() - 1;
}

}  // namespace

absl::StatusOr<ChatTemplate> ChatTemplate::ForModel(const std::string& name,
                                                    const std::string& model_dir,
                                                    const Tokenizer& tokenizer) {
  if (name == "plain") return ChatTemplate(Kind::kPlain, tokenizer);
  if (name != "auto" && name != "qwen3" && name != "llama3") {
    return absl::InvalidArgumentError(
        absl::StrCat("chat template \"", name, "\" is none of auto, qwen3, llama3, plain"));
  }
  ASSIGN_OR_RETURN(const std::string jinja, ReadJinja(model_dir));
  if (name == "llama3") return Make(Kind::kLlama3, jinja, tokenizer);
  // A model without a template of its own gets Qwen3's, which supports enable_thinking.
  if (name == "qwen3") {
    return Make(Kind::kQwen3, jinja.empty() ? "</think> enable_thinking" : jinja, tokenizer);
  }
  return FromJinja(jinja, tokenizer);
}

absl::StatusOr<ChatTemplate> ChatTemplate::FromJinja(absl::string_view jinja,
                                                     const Tokenizer& tokenizer) {
  if (jinja.empty()) return ChatTemplate(Kind::kPlain, tokenizer);
  if (absl::StrContains(jinja, "<|im_start|>")) return Make(Kind::kQwen3, jinja, tokenizer);
  if (absl::StrContains(jinja, "<|start_header_id|>")) return Make(Kind::kLlama3, jinja, tokenizer);
  return absl::InvalidArgumentError(
      "the model's chat template is neither Qwen's (<|im_start|>) nor Llama 3's "
      "(<|start_header_id|>); choose one with --chat_template=qwen3, llama3 or plain");
}

absl::StatusOr<ChatTemplate> ChatTemplate::Make(Kind kind, absl::string_view jinja,
                                                const Tokenizer& tokenizer) {
  ChatTemplate chat(kind, tokenizer);
  int32_t end = -1;
  std::vector<std::pair<const char*, int32_t*>> markers;
  if (kind == Kind::kQwen3) {
    markers = {{"<|im_start|>", &chat.start_}, {"<|im_end|>", &end}};
    chat.has_thoughts_ = absl::StrContains(jinja, kThinkEnd);
    chat.can_switch_ = absl::StrContains(jinja, "enable_thinking");
    // The Jinja source spells a newline as backslash and n.
    chat.starts_thinking_ = absl::StrContains(jinja, "<|im_start|>assistant\\n<think>\\n");
  } else {
    markers = {{"<|begin_of_text|>", &chat.begin_},
               {"<|start_header_id|>", &chat.start_},
               {"<|end_header_id|>", &chat.header_end_},
               {"<|eot_id|>", &end}};
  }
  for (const auto& [text, id] : markers) {
    const std::optional<int32_t> found = tokenizer.TokenId(text);
    if (!found || !tokenizer.IsSpecial(*found)) {
      return absl::InvalidArgumentError(absl::StrCat("the chat template ", chat.name(), " needs ",
                                                     text, ", which tokenizer.json lacks"));
    }
    *id = *found;
  }
  chat.end_ = end;
  return chat;
}

const char* ChatTemplate::name() const {
  switch (kind_) {
    case Kind::kQwen3:
      return "qwen3";
    case Kind::kLlama3:
      return "llama3";
    default:
      return "plain";
  }
}

void ChatTemplate::AppendText(absl::string_view text, std::vector<int32_t>* ids) const {
  const std::vector<int32_t> more = tokenizer_.Encode(text, /*parse_special=*/false);
  ids->insert(ids->end(), more.begin(), more.end());
}

std::vector<int32_t> ChatTemplate::Render(const std::vector<ChatMessage>& messages,
                                          bool enable_thinking) const {
  if (kind_ == Kind::kQwen3) return RenderQwen3(messages, enable_thinking);
  if (kind_ == Kind::kLlama3) return RenderLlama3(messages);
  std::string text;
  for (const ChatMessage& message : messages) text += message.content;
  std::vector<int32_t> ids;
  AppendText(text, &ids);
  return ids;
}

std::vector<int32_t> ChatTemplate::RenderQwen3(const std::vector<ChatMessage>& messages,
                                               bool enable_thinking) const {
  std::vector<int32_t> ids;
  const size_t last_query = LastQuery(messages);
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    std::string text = absl::StrCat(RoleName(message.role), "\n");
    if (message.role == ChatMessage::Role::kAssistant && has_thoughts_) {
      const AssistantTurn turn = TakeApart(message);
      if (i > last_query && (i + 1 == messages.size() || !turn.thought.empty())) {
        absl::StrAppend(&text, "<think>\n", StripNewlines(turn.thought), "\n</think>\n\n",
                        StripFrontNewlines(turn.answer));
      } else {
        absl::StrAppend(&text, turn.answer);
      }
    } else {
      absl::StrAppend(&text, message.content);
    }
    ids.push_back(start_);
    AppendText(text, &ids);
    ids.push_back(*end_);
    AppendText("\n", &ids);
  }
  std::string opening = "assistant\n";
  if (starts_thinking_) {
    opening += "<think>\n";
  } else if (can_switch_ && !enable_thinking) {
    opening += "<think>\n\n</think>\n\n";
  }
  ids.push_back(start_);
  AppendText(opening, &ids);
  return ids;
}

std::vector<int32_t> ChatTemplate::RenderLlama3(const std::vector<ChatMessage>& messages) const {
  std::vector<int32_t> ids = {begin_};
  const auto append_header = [&](const char* role) {
    ids.push_back(start_);
    AppendText(role, &ids);
    ids.push_back(header_end_);
  };
  for (const ChatMessage& message : messages) {
    append_header(RoleName(message.role));
    AppendText(absl::StrCat("\n\n", absl::StripAsciiWhitespace(message.content)), &ids);
    ids.push_back(*end_);
  }
  append_header("assistant");
  AppendText("\n\n", &ids);
  return ids;
}

}  // namespace tritonrl
