// The inside of ChatTemplate.
#ifndef TRITONRL_MODEL_CHAT_CHAT_TEMPLATE_IMPL_H_
#define TRITONRL_MODEL_CHAT_CHAT_TEMPLATE_IMPL_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/chat/chat_template.h"
#include "model/chat/control_tokens.h"
#include "model/chat/template_files.h"
#include "model/chat/template_renderer.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

inline constexpr char kAssistant[] = "assistant";

struct ChatTemplate::Impl {
  using Json = nlohmann::ordered_json;

  explicit Impl(const Tokenizer& tokenizer) : tokenizer(tokenizer), control(tokenizer) {}

  // The error of a template if it renders neither a question nor a system message and a question.
  absl::Status CheckItRenders() const;
  // InvalidArgument if the template does not know an argument of the options; `dir`: the folder.
  absl::Status CheckArguments(const std::string& dir, const Json& arguments) const;
  // Sets end_of_turn to the text that the template writes after an assistant's content.
  void FindEndOfTurn();
  // Sets turn_markers to the control tokens that the template writes around contents.
  void FindTurnMarkers();

  // As ChatTemplate::Render, with the variables `more`.
  absl::StatusOr<std::string> Render(std::span<const ChatMessage> messages,
                                     bool add_generation_prompt, const Json& more) const;
  // The same, with the places in the text that come from contents and look like control tokens.
  absl::StatusOr<MarkedText> RenderMarked(std::span<const ChatMessage> messages,
                                          bool add_generation_prompt, const Json& more) const;
  // RenderMarked for a conversation whose text is known.
  absl::StatusOr<MarkedText> Mark(std::string text, std::span<const ChatMessage> messages,
                                  bool add_generation_prompt, const Json& more) const;
  // Mark if the template copies these contents: if it writes `text` for contents with placeholders
  // too. Else nullopt.
  absl::StatusOr<std::optional<MarkedText>> TryMarking(std::vector<ChatMessage> messages,
                                                       bool of_assistants,
                                                       bool add_generation_prompt, const Json& more,
                                                       const std::string& text) const;

  // EncodeConversation's work for `messages`: the conversation with reasoning where the template
  // is to write it. `given`: the same conversation as the data have it. With generate=false the
  // last turn is taught as the template writes it or not at all.
  absl::StatusOr<EncodedConversation> EncodeTurns(const std::vector<ChatMessage>& messages,
                                                  const std::vector<ChatMessage>& given,
                                                  bool all_turns, bool generate) const;

  // `status` with the template's name.
  absl::Status Error(const absl::Status& status) const {
    return AddContext(status, absl::StrCat("chat template (", found.source, ")"));
  }

  Tokenizer tokenizer;
  ControlTokens control;
  TemplateText found;
  Json variables = Json::object();             // named tokens and the options' arguments
  std::unique_ptr<TemplateRenderer> renderer;  // null without a template
  std::vector<int32_t> begin_tokens;           // without a template
  EndOfTurn end_of_turn;
  absl::flat_hash_set<std::string> turn_markers;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_CHAT_TEMPLATE_IMPL_H_
