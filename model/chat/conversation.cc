// ChatTemplate::EncodeConversation: a conversation for training.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/chat/chat_template_impl.h"

namespace tritonrl {
namespace {

size_t CountOf(absl::string_view text, absl::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

std::string WithoutSpace(absl::string_view text) {
  std::string kept(text);
  kept.erase(std::remove_if(kept.begin(), kept.end(), absl::ascii_isspace), kept.end());
  return kept;
}

// Builds the tokens of one conversation, turn by turn.
class Builder {
 public:
  Builder(const ControlTokens& control, const EndOfTurn& end_of_turn, const MarkedText& text)
      : control_(control), end_of_turn_(end_of_turn), text_(text) {}

  // Adds the turn of message `turn` as the template writes it, after its generation prompt
  // `prompt`. False, with nothing added, if the template writes it in another form or leaves out a
  // part of the last content.
  bool AddAsWritten(const std::vector<ChatMessage>& messages, size_t turn,
                    const std::string& prompt) {
    if (prompt.size() < done_ || !absl::StartsWith(text_.text, prompt)) return false;
    const size_t end = EndOf(messages, turn, prompt.size());
    if (end == std::string::npos) return false;
    const bool last = turn + 1 == messages.size();
    const absl::string_view written =
        absl::string_view(text_.text).substr(prompt.size(), end - prompt.size());
    if (last && !Holds(prompt, written, messages[turn].content)) return false;
    Append(text_, prompt.size());
    Teach(text_, end);
    return true;
  }

  // Adds the last turn after `prompt` as generation would write it: the content and the end of
  // turn. False if `prompt` does not continue the turns before.
  bool AddAsGenerated(const MarkedText& prompt, const ChatMessage& message) {
    const absl::string_view before = absl::string_view(text_.text).substr(0, done_);
    if (!absl::StartsWith(prompt.text, before)) return false;
    Append(prompt, prompt.text.size());
    absl::string_view content = message.content;
    if (OpensThought(prompt.text) && absl::ConsumePrefix(&content, "<think>")) {
      absl::ConsumePrefix(&content, "\n");
    }
    MarkedText answer{std::string(content), control_.Find(content, /*thoughts=*/false)};
    answer.text += end_of_turn_.text;
    done_ = 0;
    Teach(answer, answer.text.size());
    return true;
  }

  EncodedConversation Finish() { return std::move(encoded_); }

 private:
  static bool OpensThought(absl::string_view prompt) {
    return absl::EndsWith(absl::StripTrailingAsciiWhitespace(prompt), "<think>");
  }

  // Whether the turn holds the whole content, up to white space.
  static bool Holds(absl::string_view prompt, absl::string_view written,
                    absl::string_view content) {
    if (OpensThought(prompt)) absl::ConsumePrefix(&content, "<think>");
    if (absl::StrContains(written, content)) return true;  // the usual case, without copies
    return absl::StrContains(WithoutSpace(written), WithoutSpace(content));
  }

  // The offset after the end of turn of the turn that begins at `begin`; npos if it has none.
  size_t EndOf(const std::vector<ChatMessage>& messages, size_t turn, size_t begin) const {
    const std::string& marker = end_of_turn_.text;
    const absl::string_view text = text_.text;
    size_t at;
    if (turn + 1 == messages.size()) {
      at = text.rfind(marker);
    } else {
      // The content itself may hold the marker.
      size_t skipped = CountOf(messages[turn].content, marker);
      at = text.find(marker, begin);
      while (skipped-- > 0 && at != absl::string_view::npos) at = text.find(marker, at + 1);
    }
    return at == absl::string_view::npos || at < begin ? std::string::npos : at + marker.size();
  }

  void Append(const MarkedText& text, size_t end) {
    const std::vector<int32_t> ids = control_.Encode(text, done_, end);
    encoded_.ids.insert(encoded_.ids.end(), ids.begin(), ids.end());
    done_ = end;
  }

  void Teach(const MarkedText& text, size_t end) {
    const auto first = static_cast<int64_t>(encoded_.ids.size());
    Append(text, end);
    encoded_.taught.emplace_back(first, static_cast<int64_t>(encoded_.ids.size()));
  }

  const ControlTokens& control_;
  const EndOfTurn& end_of_turn_;
  const MarkedText& text_;  // the whole conversation
  size_t done_ = 0;         // bytes of it that are encoded
  EncodedConversation encoded_;
};

}  // namespace

absl::StatusOr<EncodedConversation> ChatTemplate::EncodeConversation(
    const std::vector<ChatMessage>& messages, bool all_turns) const {
  if (plain()) return absl::FailedPreconditionError("this needs a chat template");
  if (messages.empty() || messages.back().role != kAssistant) {
    return absl::InvalidArgumentError("the last message must be the assistant's");
  }
  if (end_of_turn().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("chat template (", source(),
                     ") writes no control token at the end of an assistant's turn, so that a "
                     "trained model would not stop; use the chat template \"none\""));
  }
  // The whole conversation, then the generation prompt of each turn that is taught.
  std::vector<Rendering> wanted = {{messages.size(), false}};
  for (size_t turn = all_turns ? 0 : messages.size() - 1; turn < messages.size(); ++turn) {
    if (messages[turn].role == kAssistant) wanted.push_back({turn, true});
  }
  RenderedTexts rendered = impl_->renderer->RenderAll(messages, wanted, impl_->variables);
  const auto marked = [&](size_t i) -> absl::StatusOr<MarkedText> {
    if (i >= rendered.texts.size()) return impl_->Error(rendered.status);
    return impl_->Mark(std::move(rendered.texts[i]), std::span(messages).first(wanted[i].messages),
                       wanted[i].add_generation_prompt, Impl::Json::object());
  };
  ASSIGN_OR_RETURN(const MarkedText text, marked(0));
  Builder builder(impl_->control, end_of_turn(), text);
  for (size_t i = 1; i < wanted.size(); ++i) {
    const size_t turn = wanted[i].messages;
    ASSIGN_OR_RETURN(const MarkedText prompt, marked(i));
    if (builder.AddAsWritten(messages, turn, prompt.text)) continue;
    const bool last = turn + 1 == messages.size();
    if (last && builder.AddAsGenerated(prompt, messages[turn])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("message ", turn, ": chat template (", source(),
                     ") writes this turn in another form than it asks for it, so that only the "
                     "last turn can be taught"));
  }
  return builder.Finish();
}

}  // namespace tritonrl
