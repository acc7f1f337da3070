// Turns a conversation into a prompt.
#ifndef TRITONRL_ROLLOUT_SERVE_OPENAI_CHAT_TEMPLATE_H_
#define TRITONRL_ROLLOUT_SERVE_OPENAI_CHAT_TEMPLATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/tokenizer.h"

namespace tritonrl {

struct ChatMessage {
  enum class Role { kSystem, kUser, kAssistant };
  Role role = Role::kUser;
  std::string content;
  // Reasoning of an assistant's turn, if the client gives it separately from the content.
  std::optional<std::string> reasoning;
};

// The prompt formats of the model families that `model` supports, implemented in C++. A model
// folder's own Jinja template selects the format but is not run:
//   qwen3   <|im_start|>role\ncontent<|im_end|>\n for each message, then <|im_start|>assistant\n.
//           An assistant's reasoning before the last user's message is left out.
//   llama3  <|begin_of_text|>, then <|start_header_id|>role<|end_header_id|>\n\ncontent<|eot_id|>
//           for each message (content without white space around it), then the assistant's header.
//           The date that the templates of Llama 3.1 and later put into a system message is left
//           out.
//   plain   the messages' contents, concatenated without separators: for models without a chat
//           format, such as the mini policy.
// Only the template's own markers become control tokens: a marker in a message's content is
// encoded as ordinary text.
class ChatTemplate {
 public:
  enum class Kind { kQwen3, kLlama3, kPlain };

  // The template called `name` ("qwen3", "llama3", "plain"), or with "auto" the template of
  // `model_dir`: recognized by the markers in chat_template of tokenizer_config.json, or in
  // chat_template.jinja; plain if there is neither. InvalidArgument: another name, a template of
  // another kind, or a tokenizer that lacks a marker.
  static absl::StatusOr<ChatTemplate> ForModel(const std::string& name,
                                               const std::string& model_dir,
                                               const Tokenizer& tokenizer);

  // The same for the text of a Jinja template; empty: no template.
  static absl::StatusOr<ChatTemplate> FromJinja(absl::string_view jinja,
                                                const Tokenizer& tokenizer);

  // The ids of the prompt for the assistant's next turn. With enable_thinking=false the template of
  // a reasoning model first adds an empty, closed thought; other templates ignore it.
  std::vector<int32_t> Render(const std::vector<ChatMessage>& messages, bool enable_thinking) const;

  // "qwen3", "llama3", "plain".
  const char* name() const;

  // The token that ends an assistant's turn; generation stops there. None in plain.
  std::optional<int32_t> end_of_turn() const { return end_; }

 private:
  ChatTemplate(Kind kind, const Tokenizer& tokenizer) : kind_(kind), tokenizer_(tokenizer) {}

  static absl::StatusOr<ChatTemplate> Make(Kind kind, absl::string_view jinja,
                                           const Tokenizer& tokenizer);
  std::vector<int32_t> RenderQwen3(const std::vector<ChatMessage>& messages,
                                   bool enable_thinking) const;
  std::vector<int32_t> RenderLlama3(const std::vector<ChatMessage>& messages) const;
  // Appends the ids of text without control tokens.
  void AppendText(absl::string_view text, std::vector<int32_t>* ids) const;

  Kind kind_;
  Tokenizer tokenizer_;
  int32_t begin_ = -1;          // llama3: <|begin_of_text|>.
  int32_t start_ = -1;          // <|im_start|>, <|start_header_id|>.
  int32_t header_end_ = -1;     // llama3: <|end_header_id|>.
  std::optional<int32_t> end_;  // <|im_end|>, <|eot_id|>.
  // Treatment of thoughts by a Qwen template.
  bool has_thoughts_ = false;     // Splits assistants' turns at </think>.
  bool can_switch_ = false;       // Supports enable_thinking.
  bool starts_thinking_ = false;  // Opens <think> itself (Qwen3-Thinking-2507).
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_OPENAI_CHAT_TEMPLATE_H_
