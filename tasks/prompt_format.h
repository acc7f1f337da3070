// Prompts of tasks, and the split of responses into plan and code.
#ifndef TRITONRL_TASKS_PROMPT_FORMAT_H_
#define TRITONRL_TASKS_PROMPT_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/loader.h"

namespace tritonrl {

enum class PromptStyle {
  // For policies of about a million parameters: only the computation and the input shapes, 25 to 80
  // tokens. The text is the module's constants, the body of __init__, the body of forward and the
  // value of get_inputs, without comments and documentation.
  kMini,
  // For language models: instruction, rules of the response format, one worked example, then the
  // task's whole source.
  kFull,
};

// "mini" or "full"; anything else is InvalidArgument.
absl::StatusOr<PromptStyle> ParsePromptStyle(const std::string& name);

// The prompt, which ends with a newline. It depends on the task's source alone.
std::string BuildPrompt(const Task& task, PromptStyle style);

// The shape of a response. A well-formed one is `<think> plan </think>` followed by exactly one
// closed code block fenced by ``` lines, tagged python, py, triton or nothing. The opening
// `<think>` may be missing (some chat templates put it into the prompt). Fences inside the plan,
// blocks in other languages and text around the code block are ignored.
enum class ResponseShape {
  kOk,
  kEmpty,          // Nothing but white space. plan and code are empty.
  kNoThinkClose,   // No `</think>`: everything is plan, code is empty.
  kRepeatedThink,  // A second `</think>` outside the code; plan ends at the first, code as for kOk.
  kNoCode,         // No code block after the plan, or an empty one. code is empty.
  kUnclosedCode,   // The block's closing fence is missing: code runs to the end of the text.
  kTwoCodeBlocks,  // Several code blocks: code is the last one.
  kTruncated,      // Cut off by the length limit before the code block is closed; plan and code
                   // hold the part before the cut.
};

// A stable lower-case name for logs and metrics: "ok", "no_think_close", ...
absl::string_view ResponseShapeName(ResponseShape shape);

struct SplitResponse {
  ResponseShape shape = ResponseShape::kEmpty;
  std::string plan;  // Text between `<think>` and `</think>`, white space trimmed.
  std::string code;  // Contents of the code block, without the fences.

  // Only well-formed responses are run; all others are invalid (reward 0).
  bool valid() const { return shape == ResponseShape::kOk; }
};

// Splits decoded text with its special tokens; an end-of-text token after the block is ignored.
// `truncated`: generation ended at its length limit; a response that is complete is still kOk.
SplitResponse SplitResponseText(absl::string_view text, bool truncated = false);

// Token ids of one tokenizer for SplitTokens.
struct TokenSplitIds {
  // The ids that spell `</think>`: one special token, or several ordinary ones. Must not be empty.
  std::vector<int32_t> think_close;
};

// Token classes of one response: [0, plan_end) are plan, [plan_end, size) are code, including the
// end-of-text token. Every token is in exactly one class.
struct TokenSplit {
  int plan_end = 0;
  bool has_think_close = false;
};

// The plan ends with the first `</think>`. Without one all tokens are plan; SplitResponseText then
// calls the response invalid, so that both classes get reward 0.
TokenSplit SplitTokens(absl::Span<const int32_t> tokens, const TokenSplitIds& ids);

// Kind of a mini-suite response's plan, by its first words. The share of fused plans is
// fused / (fused + split), as a single operator cannot be fused.
enum class PlanKind {
  kFused,   // "fuse a b c in one kernel, ..."
  kSplit,   // "two kernels: a then b c, ..." or three
  kSingle,  // "one kernel for a, ...": the task is a single operator
  kOther,   // anything else
};
PlanKind ClassifyPlan(absl::string_view plan);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_PROMPT_FORMAT_H_
