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
#include "base/status.h"
#include "model/chat/chat_template_impl.h"
#include "model/chat/thought.h"

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
  // `prompt`. False, with nothing added, if the template writes it in another form. If `whole` is
  // not null, also if a part of its reasoning or content is missing.
  bool AddAsWritten(const std::vector<ChatMessage>& messages, size_t turn,
                    const std::string& prompt, const ChatMessage* whole) {
    if (prompt.size() < done_ || !absl::StartsWith(text_.text, prompt)) return false;
    const size_t end = EndOf(messages, turn, prompt.size());
    if (end == std::string::npos) return false;
    const size_t content_end = end - end_of_turn_.text.size();
    const absl::string_view written =
        absl::string_view(text_.text).substr(prompt.size(), content_end - prompt.size());
    if (whole != nullptr && !Holds(prompt, written, *whole)) return false;
    Append(text_, prompt.size());
    Teach(text_, end);
    return true;
  }

  // Adds the last turn after `prompt` as generation would write it: `answer` and the end of turn.
  // False if `prompt` does not continue the turns before.
  bool AddAsGenerated(const MarkedText& prompt, const std::string& answer) {
    const absl::string_view before = absl::string_view(text_.text).substr(0, done_);
    if (!absl::StartsWith(prompt.text, before)) return false;
    Append(prompt, prompt.text.size());
    MarkedText written{answer, control_.Find(answer, /*thoughts=*/false)};
    written.text += end_of_turn_.text;
    done_ = 0;
    Teach(written, written.text.size());
    return true;
  }

  EncodedConversation Finish() { return std::move(encoded_); }

 private:
  // Whether the turn holds the whole content, and before it the reasoning that the message has
  // apart from it, up to white space. In a thought that the prompt opened there is no second one.
  static bool Holds(absl::string_view prompt, absl::string_view written,
                    const ChatMessage& message) {
    const bool opens = OpensThought(prompt);
    const absl::string_view begin = absl::StripLeadingAsciiWhitespace(written);
    if (opens && absl::StartsWith(begin, "<think>")) return false;
    if (message.reasoning) return HoldsBoth(opens, written, message);
    absl::string_view content = message.content;
    if (opens && absl::ConsumePrefix(&content, "<think>") && absl::StartsWith(begin, "</think>")) {
      return false;
    }
    if (absl::StrContains(written, content)) return true;  // the usual case, without copies
    return absl::StrContains(WithoutSpace(written), WithoutSpace(content));
  }

  // A thought that <think> opened must hold the reasoning alone, and must be closed after it.
  static bool HoldsBoth(bool opened, absl::string_view written, const ChatMessage& message) {
    const std::string text = WithoutSpace(written), reasoning = WithoutSpace(*message.reasoning);
    absl::string_view rest = text;
    if (absl::ConsumePrefix(&rest, "<think>") || opened) {
      if (!absl::ConsumePrefix(&rest, reasoning)) return false;
      if (!absl::ConsumePrefix(&rest, "</think>")) return false;
    } else {
      const size_t at = rest.find(reasoning);
      if (at == absl::string_view::npos) return false;
      rest.remove_prefix(at + reasoning.size());
    }
    return absl::StrContains(rest, WithoutSpace(message.content));
  }

  // The offset after the end of turn of the turn that begins at `begin`; npos if it has none.
  size_t EndOf(const std::vector<ChatMessage>& messages, size_t turn, size_t begin) const {
    const std::string& marker = end_of_turn_.text;
    const absl::string_view text = text_.text;
    size_t at;
    if (turn + 1 == messages.size()) {
      at = text.rfind(marker);
    } else {
      // The content and the reasoning may hold the marker.
      size_t skipped = CountOf(messages[turn].content, marker);
      if (messages[turn].reasoning) skipped += CountOf(*messages[turn].reasoning, marker);
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

// The messages, without thoughts in contents that repeat the reasoning.
absl::StatusOr<std::vector<ChatMessage>> WithoutRepeats(std::vector<ChatMessage> messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].reasoning) continue;
    const absl::StatusOr<absl::string_view> content =
        WithoutRepeatedThought(messages[i].content, *messages[i].reasoning);
    if (!content.ok()) return AddContext(content.status(), absl::StrCat("message ", i));
    messages[i].content = std::string(*content);
  }
  return messages;
}

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
  const auto reasons = [](const ChatMessage& message) { return message.reasoning.has_value(); };
  if (std::none_of(messages.begin(), messages.end(), reasons)) {
    return impl_->EncodeTurns(messages, messages, all_turns, /*generate=*/true);
  }
  ASSIGN_OR_RETURN(const std::vector<ChatMessage> given, WithoutRepeats(messages));
  const auto first = all_turns ? given.begin() : given.end() - 1;
  const bool separate = std::any_of(first, given.end(), reasons);
  // A template that does not know the field would leave it out.
  if (!separate || absl::StrContains(text(), "reasoning_content")) {
    absl::StatusOr<EncodedConversation> encoded =
        impl_->EncodeTurns(given, given, all_turns, /*generate=*/!separate);
    if (!separate || encoded.ok() || !absl::IsInvalidArgument(encoded.status())) return encoded;
  }
  std::vector<ChatMessage> joined = given;
  for (size_t i = first - given.begin(); i < joined.size(); ++i) {
    if (!joined[i].reasoning || joined[i].role != kAssistant) continue;
    joined[i].content = WithThought(*joined[i].reasoning, joined[i].content);
    joined[i].reasoning.reset();
  }
  return impl_->EncodeTurns(joined, given, all_turns, /*generate=*/true);
}

absl::StatusOr<EncodedConversation> ChatTemplate::Impl::EncodeTurns(
    const std::vector<ChatMessage>& messages, const std::vector<ChatMessage>& given, bool all_turns,
    bool generate) const {
  // The whole conversation, then the generation prompt of each turn that is taught.
  std::vector<Rendering> wanted = {{messages.size(), false}};
  for (size_t turn = all_turns ? 0 : messages.size() - 1; turn < messages.size(); ++turn) {
    if (messages[turn].role == kAssistant) wanted.push_back({turn, true});
  }
  RenderedTexts rendered = renderer->RenderAll(messages, wanted, variables);
  const auto marked = [&](size_t i) -> absl::StatusOr<MarkedText> {
    if (i >= rendered.texts.size()) return Error(rendered.status);
    return Mark(std::move(rendered.texts[i]), std::span(messages).first(wanted[i].messages),
                wanted[i].add_generation_prompt, Json::object());
  };
  ASSIGN_OR_RETURN(const MarkedText text, marked(0));
  Builder builder(control, end_of_turn, text);
  for (size_t i = 1; i < wanted.size(); ++i) {
    const size_t turn = wanted[i].messages;
    const bool last = turn + 1 == messages.size();
    const bool reasons = given[turn].reasoning.has_value();
    ASSIGN_OR_RETURN(const MarkedText prompt, marked(i));
    const ChatMessage* const whole = last || reasons ? &given[turn] : nullptr;
    if (builder.AddAsWritten(messages, turn, prompt.text, whole)) continue;
    if (last && generate) {
      const absl::StatusOr<std::string> answer =
          AnswerAfter(prompt.text, given[turn].content, given[turn].reasoning);
      if (!answer.ok()) return AddContext(answer.status(), absl::StrCat("message ", turn));
      if (builder.AddAsGenerated(prompt, *answer)) continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "message ", turn, ": chat template (", found.source, ") writes this turn ",
        reasons ? "without its reasoning or " : "", "in another form than it asks for it, so that ",
        "only the last turn can be taught"));
  }
  return builder.Finish();
}

}  // namespace tritonrl
