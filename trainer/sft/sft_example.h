// One example of supervised fine-tuning: the forms in which files hold it, and its parser.
#ifndef TRITONRL_TRAINER_SFT_SFT_EXAMPLE_H_
#define TRITONRL_TRAINER_SFT_SFT_EXAMPLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

struct SftMessage {
  std::string role;  // system, developer, user, assistant or tool
  std::string content;
  std::optional<std::string> reasoning;  // of an assistant's turn, if the file has it separately
};

// A conversation that ends with the assistant's turn and has at least one message before it. A pair
// of prompt and response is a conversation of two messages.
struct SftExample {
  std::vector<SftMessage> messages;
};

// The form of the examples of one file.
enum class SftFormat {
  kPromptResponse,    // {"prompt", "response"}
  kMessages,          // {"messages": [{"role", "content"}, ...]}
  kPromptCompletion,  // {"prompt", "completion"}
  kShareGpt,          // {"conversations": [{"from", "value"}, ...]}
  kAlpaca,            // {"instruction", "input", "output", "system"}
};

// "prompt/response", "messages", "prompt/completion", "ShareGPT", "Alpaca".
const char* SftFormatName(SftFormat format);

// The fields that some form uses.
const std::vector<std::string>& SftFields();

// Returns the form of the object in `text` by the names of its fields, nullopt if `text` is not a
// JSON object. InvalidArgument, with the names of the object's fields, if they fit no form.
absl::StatusOr<std::optional<SftFormat>> DetectSftFormat(absl::string_view text);

// Parses one JSON object of the given form. Fields that the form does not use may hold anything,
// also NaN and halves of surrogate pairs, as Python writes them. InvalidArgument names the field
// and the expected value.
absl::StatusOr<SftExample> ParseSftExample(absl::string_view text, SftFormat format);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_SFT_EXAMPLE_H_
