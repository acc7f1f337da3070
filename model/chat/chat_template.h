// Chat templates: a conversation as the text and the tokens that a model was tuned on.
#ifndef TRITONRL_MODEL_CHAT_CHAT_TEMPLATE_H_
#define TRITONRL_MODEL_CHAT_CHAT_TEMPLATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "model/tokenizer/tokenizer.h"

namespace tritonrl {

// One message of a conversation; a template sees it as an object {role, content} and, if
// `reasoning` is set, reasoning_content.
struct ChatMessage {
  std::string role = "user";  // system, user, assistant, or another role that the template knows
  std::string content;
  // Reasoning of an assistant's turn, if it is given separately from the content.
  std::optional<std::string> reasoning;
};

struct ChatOptions {
  // "auto": the model folder's own template, "none" if it has none. "none": the contents, joined
  // without separators, after the begin tokens of tokenizer.json. Else the path of a Jinja file.
  std::string chat_template = "auto";
  // The template's variable enable_thinking; not set: the template's own default.
  std::optional<bool> enable_thinking;
  // More variables of the template, as a JSON object; empty: none. They override enable_thinking.
  std::string arguments;
  // Time limit of one rendering. A template that takes longer is refused.
  absl::Duration render_deadline = absl::Seconds(10);
};

// The text that ends an assistant's turn: from the end of the content through the first control
// token after it, for example "<|im_end|>" or "<|eot_id|>". Empty without a template, and where the
// template writes no control token after the content.
struct EndOfTurn {
  std::string text;
  std::vector<int32_t> ids;  // its tokens; the last is the control token
  bool empty() const { return ids.empty(); }
  int32_t stop_id() const { return ids.back(); }  // generation stops there; not for an empty one
};

// A conversation as tokens, for training on what the assistant said.
struct EncodedConversation {
  std::vector<int32_t> ids;
  // Half-open ranges of `ids` that are taught, in order: what the assistant wrote in a turn, and
  // its end of turn.
  std::vector<std::pair<int64_t, int64_t>> taught;
};

// The chat template of a model folder. Jinja2 renders it in a helper process of its own, and the
// text equals that of apply_chat_template in `transformers`. Templates are untrusted: the helper is
// a sandbox without access to files, with limits on time and memory. It is started again after it
// died. Cheap to copy (copies share the helper), thread-safe.
//
// Control tokens in a message's content stay ordinary text. `transformers` makes control tokens of
// them, so the ids differ from its ids for such contents only. There are three exceptions:
// - <think> and </think> of an assistant are control tokens if the tokenizer says so.
// - If a template splits the contents of assistants at control tokens, those tokens count too.
// - If a template changes another content that holds a control token, Encode refuses the
//   conversation.
class ChatTemplate {
 public:
  // Loads the template of the folder `model_dir` that `options` name, starts its helper and renders
  // a short conversation. Which template a folder has is decided as in `transformers`:
  // chat_template.jinja and additional_chat_templates/, else chat_template of
  // tokenizer_config.json (of several the one named "default"), else chat_template.json.
  // InvalidArgument: a template that is not Jinja, raises for a single message, or has no
  // default; arguments that are not a JSON object, or that the template does not read (all of them
  // without a template). NotFound: a path without a file.
  static absl::StatusOr<ChatTemplate> Load(const std::string& model_dir, const ChatOptions& options,
                                           const Tokenizer& tokenizer);

  // Whether there is no template: contents joined without separators.
  bool plain() const;

  // Where the template came from, for a line of the log: "none", "chat_template.jinja",
  // "chat_template of tokenizer_config.json", or the path of the options.
  const std::string& source() const;

  // The template's text; empty if plain(). Part of keys of caches.
  const std::string& text() const;

  // A text that is equal for equal templates, variables and options: for keys of caches.
  std::string CacheKey() const;

  // Renders a conversation. With add_generation_prompt the text ends where the assistant's next
  // turn begins. `arguments`: a JSON object of variables of this call alone, which override those
  // of the options and may be unknown to the template; empty: none. InvalidArgument with the
  // template's own message if it raises. Without a template: the contents alone, without begin
  // tokens.
  absl::StatusOr<std::string> Render(const std::vector<ChatMessage>& messages,
                                     bool add_generation_prompt,
                                     const std::string& arguments = "") const;

  // The tokens of Render's text: those of `transformers` (no token is added, control tokens that
  // the template wrote are recognized). Without a template: the begin tokens of tokenizer.json's
  // post_processor, then the contents without control tokens.
  absl::StatusOr<std::vector<int32_t>> Encode(const std::vector<ChatMessage>& messages,
                                              bool add_generation_prompt,
                                              const std::string& arguments = "") const;

  // Encodes a conversation for training. Each taught turn is encoded apart from the text before
  // it, as generation sees it. With all_turns every turn of the assistant is taught, else only the
  // last message, which must be the assistant's. A turn is taught as the template writes it in the
  // whole conversation, if this text continues the turn's generation prompt and has the whole
  // content and the reasoning. A template that leaves the reasoning out gets it as a thought in the
  // content (WithThought in thought.h). If it drops that too, the last turn is taught as generation
  // would write it: the generation prompt, thought and content without a <think> that the prompt
  // already has, and the end of turn. InvalidArgument: such a turn that is not the last, with its
  // number; reasoning after a prompt that has closed the thought, or beside another thought in the
  // content; a template without an end of turn. FailedPrecondition if plain().
  absl::StatusOr<EncodedConversation> EncodeConversation(const std::vector<ChatMessage>& messages,
                                                         bool all_turns) const;

  // What ends an assistant's turn.
  const EndOfTurn& end_of_turn() const;

  // The control tokens that `content` begins with, after white space, as far as the template itself
  // writes them around contents, such as "<|im_start|>". Not empty: the content is a text that the
  // template has rendered already. Empty if plain().
  std::string LeadingMarkers(absl::string_view content) const;

  // `ids` and, if the template has one, the token that ends an assistant's turn.
  std::vector<int32_t> WithEndOfTurn(std::vector<int32_t> ids) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<const Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_CHAT_TEMPLATE_H_
