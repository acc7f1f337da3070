// Names of response styles, and the style of a model by its folder.
#ifndef TRITONRL_TASKS_RESPONSE_STYLE_H_
#define TRITONRL_TASKS_RESPONSE_STYLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/response.h"

namespace tritonrl {

// "thinking" or "plain".
absl::string_view PlanStyleName(ResponseStyle::Plan plan);
// "only", "first", "last" or "joined".
absl::string_view CodeBlockName(ResponseStyle::CodeBlock code_block);

// A style with the reason for it.
struct ResponseStyleChoice {
  ResponseStyle style;
  std::string reason;  // "its chat template has no </think>"

  // For the start of a run: "Responses are read as plain (reason), code block: first".
  std::string Sentence() const;
};

// The style of the model in `model_dir`:
//
// - A prompt that ends with an opened `<think>` makes it thinking; one that ends with `</think>`
//   (thinking switched off in the chat template) makes it plain. `prompt` is a prompt of the model
//   with its chat template, or the end of one; "" if there is none.
// - Else the chat template decides: thinking if it mentions `<think>`, plain if it mentions neither
//   `<think>` nor `</think>`. One with `</think>` alone is InvalidArgument: some models think with
//   such a template, and others only cut thoughts out of earlier turns. `chat_template` is the text
//   of the template that prompts are rendered with, which need not be the folder's own
//   (ChatTemplate::text); "" without one.
// - Else, without a chat template, the folder's tokenizer.json decides in the same way.
//
// The code block is kOnly for a thinking model, and kFirst for a plain one. A folder without
// tokenizer.json is not an error.
absl::StatusOr<ResponseStyleChoice> DetectResponseStyle(const std::string& model_dir,
                                                        absl::string_view chat_template,
                                                        absl::string_view prompt = "");

// The style that the two settings ask for, where "auto" takes what DetectResponseStyle says. With
// response_style "plain" or "thinking", "auto" is that style's code block. InvalidArgument names
// the setting, `response_style` or `code_block`, and its values. The folder is read only if
// `response_style` is "auto".
absl::StatusOr<ResponseStyleChoice> ChooseResponseStyle(absl::string_view response_style,
                                                        absl::string_view code_block,
                                                        const std::string& model_dir,
                                                        absl::string_view chat_template,
                                                        absl::string_view prompt = "");

// InvalidArgument as from ChooseResponseStyle; reads no file.
absl::Status CheckResponseStyleNames(absl::string_view response_style,
                                     absl::string_view code_block);

// The two settings on top of `base`: "auto" keeps what `base` has, but "thinking" and "plain" come
// with their own code block. InvalidArgument as from ChooseResponseStyle.
absl::StatusOr<ResponseStyle> OverrideResponseStyle(absl::string_view response_style,
                                                    absl::string_view code_block,
                                                    const ResponseStyle& base);

// The style with these names, as they are recorded with a sample; "auto" is not such a name.
absl::StatusOr<ResponseStyle> ResponseStyleFromNames(absl::string_view plan,
                                                     absl::string_view code_block);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_RESPONSE_STYLE_H_
