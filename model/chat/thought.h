// The form in which a model writes its reasoning: <think>, the reasoning, </think>, the answer.
#ifndef TRITONRL_MODEL_CHAT_THOUGHT_H_
#define TRITONRL_MODEL_CHAT_THOUGHT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// "<think>\n", the reasoning without white space around it, "\n</think>\n\n", and the content
// without line breaks before it.
std::string WithThought(absl::string_view reasoning, absl::string_view content);

// Whether `prompt` ends with <think> or </think>, apart from white space.
bool OpensThought(absl::string_view prompt);
bool ClosesThought(absl::string_view prompt);

// `content` without a thought at its beginning that repeats `reasoning`, and line breaks after it.
// InvalidArgument: it begins with another thought.
absl::StatusOr<absl::string_view> WithoutRepeatedThought(absl::string_view content,
                                                         absl::string_view reasoning);

// What an assistant writes after `prompt` in a turn with this content and, if the data have it
// separately, this reasoning: the two as a thought and an answer, with one <think> in prompt and
// text together. InvalidArgument, for a turn with reasoning: the content begins with another
// thought, or the prompt has closed the thought already.
absl::StatusOr<std::string> AnswerAfter(absl::string_view prompt, absl::string_view content,
                                        const std::optional<std::string>& reasoning);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_THOUGHT_H_
