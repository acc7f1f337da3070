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
  // For policies of about a million parameters: only what the program computes and on which
  // shapes, 25 to 80 tokens. The text is the source reduced to the body of forward (without
  // comments and documentation), preceded by the module's constants and the body of __init__
  // where there are any, and followed by what get_inputs returns.
  kMini,
  // For language models: instruction, rules of the response format, one worked example, then the
  // task's whole source.
  kFull,
};

// "mini" or "full"; anything else is InvalidArgument.
absl::StatusOr<PromptStyle> ParsePromptStyle(const std::string& name);

// The text the policy sees before its response; it ends with a newline. Computed from the task's
// source alone, so the same file always gives the same prompt.
std::string BuildPrompt(const Task& task, PromptStyle style);

// The shape of a response. A well-formed one is `<think> plan </think>` followed by exactly one
// closed code block fenced by ``` lines, tagged python, py, triton or nothing. The opening
// `<think>` may be missing (some chat templates write it into the prompt). Fences inside the plan
// and blocks in other languages do not count; text around the code block is ignored.
enum class ResponseShape {
  kOk,
  kEmpty,          // Nothing but white space. plan and code are empty.
  kNoThinkClose,   // No `</think>`: everything is plan, code is empty.
  kRepeatedThink,  // `</think>` again outside the code: plan ends at the first; code as if ok.
  kNoCode,         // No code block after the plan, or an empty one. code is empty.
  kUnclosedCode,   // The block's closing fence is missing: code runs to the end of the text.
  kTwoCodeBlocks,  // Several code blocks: code is the last one.
  kTruncated,      // Cut off by the length limit inside the plan or the code block, or before
                   // the code; plan and code as far as they got.
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

// Splits decoded text (special tokens kept, an end-of-text token may trail and is ignored as text
// around the block). `truncated` says that generation ended at its length limit; a response that
// is complete all the same stays kOk.
SplitResponse SplitResponseText(absl::string_view text, bool truncated = false);

// The token ids that the split needs, for one tokenizer.
struct TokenSplitIds {
  // The ids that spell `</think>`: one special token, or several ordinary ones. Must not be empty.
  std::vector<int32_t> think_close;
};

// Token classes of one response: [0, plan_end) are plan, [plan_end, size) are code, so every token
// is in exactly one class (the end-of-text token is the last of the code class).
struct TokenSplit {
  int plan_end = 0;
  bool has_think_close = false;
};

// The plan is everything up to and with the first `</think>`, whatever follows it. Without one all
// tokens are plan (the policy never left the plan), and SplitResponseText calls the response
// invalid, so both classes get the reward 0.
TokenSplit SplitTokens(absl::Span<const int32_t> tokens, const TokenSplitIds& ids);

// What the plan of a mini-suite response announces (the plan's first words; see tasks/README.md).
// The share of fused plans is fused / (fused + split): a single operator leaves nothing to fuse.
enum class PlanKind {
  kFused,   // "fuse a b c in one kernel, ..."
  kSplit,   // "two kernels: a then b c, ..." or three
  kSingle,  // "one kernel for a, ...": the task is a single operator
  kOther,   // anything else
};
PlanKind ClassifyPlan(absl::string_view plan);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_PROMPT_FORMAT_H_
