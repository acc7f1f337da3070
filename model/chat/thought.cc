#include "model/chat/thought.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr absl::string_view kOpen = "<think>";
constexpr absl::string_view kClose = "</think>";

// `text` without line breaks at its beginning.
absl::string_view WithoutLineBreaks(absl::string_view text) {
  while (absl::ConsumePrefix(&text, "\n")) {
  }
  return text;
}

}  // namespace

std::string WithThought(absl::string_view reasoning, absl::string_view content) {
  return absl::StrCat(kOpen, "\n", absl::StripAsciiWhitespace(reasoning), "\n", kClose, "\n\n",
                      WithoutLineBreaks(content));
}

bool OpensThought(absl::string_view prompt) {
  return absl::EndsWith(absl::StripTrailingAsciiWhitespace(prompt), kOpen);
}

bool ClosesThought(absl::string_view prompt) {
  return absl::EndsWith(absl::StripTrailingAsciiWhitespace(prompt), kClose);
}

absl::StatusOr<absl::string_view> WithoutRepeatedThought(absl::string_view content,
                                                         absl::string_view reasoning) {
  absl::string_view text = absl::StripLeadingAsciiWhitespace(content);
  const bool opened = absl::ConsumePrefix(&text, kOpen);
  const size_t close = text.find(kClose);
  if (close != absl::string_view::npos &&
      absl::StripAsciiWhitespace(text.substr(0, close)) == absl::StripAsciiWhitespace(reasoning)) {
    return WithoutLineBreaks(text.substr(close + kClose.size()));
  }
  if (!opened) return content;  // a </think> further on may be part of the answer
  return absl::InvalidArgumentError(
      "the turn has reasoning of its own and a content that begins with another <think>; keep one "
      "of the two");
}

absl::StatusOr<std::string> AnswerAfter(absl::string_view prompt, absl::string_view content,
                                        const std::optional<std::string>& reasoning) {
  std::string text(content);
  if (reasoning.has_value()) {
    ASSIGN_OR_RETURN(const absl::string_view rest, WithoutRepeatedThought(content, *reasoning));
    text = WithThought(*reasoning, rest);
    if (ClosesThought(prompt)) {
      return absl::InvalidArgumentError(
          "the prompt ends with </think> (thinking is switched off), so that the turn's reasoning "
          "cannot be taught; switch thinking on, or remove the reasoning");
    }
  }
  absl::string_view rest = text;
  if (OpensThought(prompt) && absl::ConsumePrefix(&rest, kOpen)) {
    if (!absl::EndsWith(prompt, kOpen)) absl::ConsumePrefix(&rest, "\n");
  }
  return std::string(rest);
}

}  // namespace tritonrl
