#include "model/chat/chat_template.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "model/chat/chat_template_impl.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

// A content that no template changes, to find the text that a template writes after a content.
constexpr char kProbe[] = "Answer8f1c";

// The variables that `arguments`, an object in JSON, sets. `name` is for errors.
absl::StatusOr<Json> ParseArguments(const std::string& arguments, const char* name) {
  if (arguments.empty()) return Json::object();
  Json json = Json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must be a JSON object, such as {\"enable_thinking\": false}"));
  }
  for (const char* own : {"messages", "add_generation_prompt", "tools", "documents", "self"}) {
    if (!json.contains(own)) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, " cannot set ", own));
  }
  return json;
}

// The content of a message, and its reasoning if it has one.
std::vector<std::string*> TextsOf(ChatMessage* message) {
  std::vector<std::string*> texts = {&message->content};
  if (message->reasoning) texts.push_back(&*message->reasoning);
  return texts;
}

}  // namespace

absl::StatusOr<std::string> ChatTemplate::Impl::Render(std::span<const ChatMessage> messages,
                                                       bool add_generation_prompt,
                                                       const Json& more) const {
  if (renderer == nullptr) {
    std::string text;
    for (const ChatMessage& message : messages) text += message.content;
    return text;
  }
  Json all = variables;
  all.update(more);
  absl::StatusOr<std::string> text = renderer->Render(messages, add_generation_prompt, all);
  if (!text.ok()) return Error(text.status());
  return text;
}

absl::StatusOr<std::optional<MarkedText>> ChatTemplate::Impl::TryMarking(
    std::vector<ChatMessage> messages, bool of_assistants, bool add_generation_prompt,
    const Json& more, const std::string& text) const {
  std::vector<absl::string_view> texts = {text};
  for (ChatMessage& message : messages) {
    for (const std::string* content : TextsOf(&message)) texts.push_back(*content);
  }
  std::optional<Placeholders> placeholders = Placeholders::For(texts);
  if (!placeholders) return std::optional<MarkedText>();
  for (ChatMessage& message : messages) {
    const bool assistant = message.role == kAssistant;
    if (assistant && !of_assistants) continue;
    for (std::string* content : TextsOf(&message)) {
      *content = placeholders->Replace(*content, control.Find(*content, !assistant));
    }
  }
  ASSIGN_OR_RETURN(const std::string replaced, Render(messages, add_generation_prompt, more));
  std::optional<MarkedText> marked = placeholders->Restore(replaced);
  if (marked && marked->text != text) marked.reset();
  return marked;
}

absl::StatusOr<MarkedText> ChatTemplate::Impl::RenderMarked(std::span<const ChatMessage> messages,
                                                            bool add_generation_prompt,
                                                            const Json& more) const {
  ASSIGN_OR_RETURN(std::string text, Render(messages, add_generation_prompt, more));
  return Mark(std::move(text), messages, add_generation_prompt, more);
}

absl::StatusOr<MarkedText> ChatTemplate::Impl::Mark(std::string text,
                                                    std::span<const ChatMessage> messages,
                                                    bool add_generation_prompt,
                                                    const Json& more) const {
  const auto holds_control = [&](const ChatMessage& message) {
    const bool thoughts = message.role != kAssistant;
    return !control.Find(message.content, thoughts).empty() ||
           (message.reasoning && !control.Find(*message.reasoning, thoughts).empty());
  };
  if (std::none_of(messages.begin(), messages.end(), holds_control)) {
    return MarkedText{std::move(text), {}};
  }
  for (const bool of_assistants : {true, false}) {
    ASSIGN_OR_RETURN(std::optional<MarkedText> marked,
                     TryMarking({messages.begin(), messages.end()}, of_assistants,
                                add_generation_prompt, more, text));
    if (marked) return *std::move(marked);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("chat template (", found.source,
                   ") changes a message that holds a control token; remove the "
                   "token from the message's content"));
}

absl::Status ChatTemplate::Impl::CheckItRenders() const {
  const std::vector<ChatMessage> user = {{"user", "Question"}};
  const absl::Status status = Render(user, true, Json::object()).status();
  if (status.ok()) return status;
  // Some templates want a system message.
  const std::vector<ChatMessage> both = {{"system", "Role"}, {"user", "Question"}};
  return Render(both, true, Json::object()).ok() ? absl::OkStatus() : status;
}

absl::Status ChatTemplate::Impl::CheckArguments(const std::string& dir,
                                                const Json& arguments) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : arguments.items()) names.push_back(name);
  if (names.empty()) return absl::OkStatus();
  if (renderer != nullptr) {
    absl::StatusOr<std::vector<std::string>> unknown = renderer->UnknownVariables(names);
    if (!unknown.ok()) return Error(unknown.status());
    names = *std::move(unknown);
  }
  if (names.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("chat template (", found.source, ") of ", dir, " has no variable ",
                   absl::StrJoin(names, ", "), ", so that setting it would change nothing; ",
                   "remove it from the arguments of the chat template"));
}

void ChatTemplate::Impl::FindEndOfTurn() {
  absl::StatusOr<std::string> text;
  for (const bool system : {false, true}) {
    std::vector<ChatMessage> messages = {{"user", "Question"}, {kAssistant, kProbe}};
    if (system) messages.insert(messages.begin(), {"system", "Role"});
    text = Render(messages, false, Json::object());
    if (text.ok()) break;
  }
  if (!text.ok()) return;  // a template for a single message
  const size_t answer = text->rfind(kProbe);
  if (answer == std::string::npos) return;
  const std::string behind = text->substr(answer + sizeof(kProbe) - 1);
  size_t end = 0;
  if (const auto tokens = control.Find(behind); !tokens.empty()) end = tokens[0].second;
  // Some folders do not mark their end token as a control token.
  const auto named = variables.find("eos_token");
  if (end == 0 && named != variables.end() && named->is_string()) {
    const std::string eos = named->get<std::string>();
    const size_t at = behind.find(eos);
    if (at != std::string::npos && tokenizer.TokenId(eos)) end = at + eos.size();
  }
  end_of_turn.text = behind.substr(0, end);
  end_of_turn.ids = tokenizer.Encode(end_of_turn.text);
}

void ChatTemplate::Impl::FindTurnMarkers() {
  const ChatMessage system = {"system", "Role"}, user = {"user", "Question"},
                    assistant = {kAssistant, kProbe};
  // Not every template renders each of these.
  for (const std::vector<ChatMessage>& messages : std::vector<std::vector<ChatMessage>>{
           {user}, {user, assistant}, {system, user}, {system, user, assistant}}) {
    const bool ask = messages.back().role != kAssistant;
    const absl::StatusOr<std::string> text = Render(messages, ask, Json::object());
    if (!text.ok()) continue;
    for (const auto& [begin, end] : control.Find(*text)) {
      turn_markers.insert(text->substr(begin, end - begin));
    }
  }
  turn_markers.erase("<think>");  // may begin a content
  turn_markers.erase("</think>");
}

absl::StatusOr<ChatTemplate> ChatTemplate::Load(const std::string& model_dir,
                                                const ChatOptions& options,
                                                const Tokenizer& tokenizer) {
  auto impl = std::make_shared<Impl>(tokenizer);
  if (options.chat_template == "auto") {
    ASSIGN_OR_RETURN(impl->found, FindChatTemplate(model_dir));
  } else if (options.chat_template != "none") {
    ASSIGN_OR_RETURN(impl->found, ReadChatTemplate(UserPath(options.chat_template)));
  }
  Json arguments = Json::object();
  if (options.enable_thinking) arguments["enable_thinking"] = *options.enable_thinking;
  ASSIGN_OR_RETURN(const Json more,
                   ParseArguments(options.arguments, "the chat template's arguments"));
  arguments.update(more);
  if (impl->found.text.empty()) {
    RETURN_IF_ERROR(impl->CheckArguments(model_dir, arguments));
    ASSIGN_OR_RETURN(impl->begin_tokens, BeginTokens(model_dir));
    return ChatTemplate(impl);
  }
  ASSIGN_OR_RETURN(const nlohmann::json tokens, NamedTokens(model_dir));
  for (const auto& [name, token] : tokens.items()) impl->variables[name] = token;
  impl->variables.update(arguments);
  auto renderer = TemplateRenderer::Start(impl->found.text, options.render_deadline);
  if (!renderer.ok()) return impl->Error(renderer.status());
  impl->renderer = *std::move(renderer);
  RETURN_IF_ERROR(impl->CheckArguments(model_dir, arguments));
  if (const absl::Status renders = impl->CheckItRenders(); !renders.ok()) {
    return absl::Status(renders.code(),
                        absl::StrCat(renders.message(),
                                     "; a template must write a single question of a user, so give "
                                     "another one, or \"none\""));
  }
  impl->FindEndOfTurn();
  impl->FindTurnMarkers();
  return ChatTemplate(impl);
}

bool ChatTemplate::plain() const { return impl_->renderer == nullptr; }

const std::string& ChatTemplate::source() const { return impl_->found.source; }

const std::string& ChatTemplate::text() const { return impl_->found.text; }

std::string ChatTemplate::CacheKey() const {
  if (plain()) return "none";
  return Sha256Hex(absl::StrCat(text().size(), "\n", text(), impl_->variables.dump()));
}

absl::StatusOr<std::string> ChatTemplate::Render(const std::vector<ChatMessage>& messages,
                                                 bool add_generation_prompt,
                                                 const std::string& arguments) const {
  ASSIGN_OR_RETURN(const Json more, ParseArguments(arguments, "chat_template_kwargs"));
  return impl_->Render(messages, add_generation_prompt, more);
}

absl::StatusOr<std::vector<int32_t>> ChatTemplate::Encode(const std::vector<ChatMessage>& messages,
                                                          bool add_generation_prompt,
                                                          const std::string& arguments) const {
  ASSIGN_OR_RETURN(const Json more, ParseArguments(arguments, "chat_template_kwargs"));
  if (plain()) {
    ASSIGN_OR_RETURN(const std::string text, impl_->Render(messages, false, more));
    std::vector<int32_t> ids = impl_->begin_tokens;
    const std::vector<int32_t> rest = impl_->tokenizer.Encode(text, /*parse_special=*/false);
    ids.insert(ids.end(), rest.begin(), rest.end());
    return ids;
  }
  ASSIGN_OR_RETURN(const MarkedText text,
                   impl_->RenderMarked(messages, add_generation_prompt, more));
  return impl_->control.Encode(text, 0, text.text.size());
}

const EndOfTurn& ChatTemplate::end_of_turn() const { return impl_->end_of_turn; }

std::string ChatTemplate::LeadingMarkers(absl::string_view content) const {
  // Markers are short, and most contents begin with none.
  constexpr size_t kMostBytes = 256;
  content = absl::StripLeadingAsciiWhitespace(content).substr(0, kMostBytes);
  size_t done = 0;
  for (const auto& [begin, end] : impl_->control.Find(content)) {
    if (begin != done || !impl_->turn_markers.contains(content.substr(begin, end - begin))) break;
    done = end;
  }
  return std::string(content.substr(0, done));
}

std::vector<int32_t> ChatTemplate::WithEndOfTurn(std::vector<int32_t> ids) const {
  if (end_of_turn().empty()) return ids;
  if (std::find(ids.begin(), ids.end(), end_of_turn().stop_id()) == ids.end()) {
    ids.push_back(end_of_turn().stop_id());
  }
  return ids;
}

}  // namespace tritonrl
