// Builds the prompts of tasks and splits responses into plan and code.
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
  // For the mini policy: only the computation and the input shapes, 25 to 80 tokens. The text is
  // the module's constants, the body of __init__, the body of forward and the value of get_inputs,
  // without comments and documentation.
  kMini,
  // For language models: instruction, rules of the response format, one worked example, and the
  // task's whole source.
  kFull,
};

// Parses "mini" or "full"; InvalidArgument for other names.
absl::StatusOr<PromptStyle> ParsePromptStyle(const std::string& name);

// Returns the prompt, which depends only on the task's source and ends with a newline.
std::string BuildPrompt(const Task& task, PromptStyle style);

// The shape of a response. A well-formed response is `<think> plan </think>` followed by exactly
// one code block between ``` lines, tagged python, python3, py, triton or untagged. The opening
// `<think>` may be missing, because some chat templates put it into the prompt. Fences inside the
// plan, blocks in other languages and text around the code block are ignored.
enum class ResponseShape {
  kOk,
  kEmpty,          // Only white space. plan and code are empty.
  kNoThinkClose,   // No `</think>`: the whole response is plan, code is empty.
  kRepeatedThink,  // A second `</think>` outside the code; plan ends at the first, code as for kOk.
  kNoCode,         // No code block after the plan, or an empty one. code is empty.
  kUnclosedCode,   // The block's closing fence is missing: code extends to the end of the text.
  kTwoCodeBlocks,  // Several code blocks: code is the last one.
  kTruncated,      // The length limit cut the response before the end of the code block; plan and
                   // code hold the text before the cut.
};

// Returns a stable lower-case name for logs and metrics: "ok", "no_think_close", ...
absl::string_view ResponseShapeName(ResponseShape shape);

struct SplitResponse {
  ResponseShape shape = ResponseShape::kEmpty;
  std::string plan;  // Text between `<think>` and `</think>`, white space trimmed.
  std::string code;  // Contents of the code block, without the fences.

  // Only the code of well-formed responses is verified; all others fail the syntax layer.
  bool valid() const { return shape == ResponseShape::kOk; }
};

// Splits a decoded response that includes its special tokens; an end-of-text token after the block
// is ignored. `truncated` means that generation reached its length limit; a complete response is
// kOk nevertheless.
SplitResponse SplitResponseText(absl::string_view text, bool truncated = false);

// The token ids of one tokenizer that SplitTokens needs.
struct TokenSplitIds {
  // The tokens of `</think>`: one special token or several ordinary ones. If empty, no token closes
  // the plan.
  std::vector<int32_t> think_close;
};

// The token classes of one response: [0, plan_end) are plan tokens, [plan_end, size) are code
// tokens, including the end-of-text token.
struct TokenSplit {
  int plan_end = 0;
  bool has_think_close = false;
};

// Splits a response's tokens; the plan ends with the first `</think>`. Without one all tokens are
// plan tokens; SplitResponseText calls such a response malformed, so both classes get reward 0.
TokenSplit SplitTokens(absl::Span<const int32_t> tokens, const TokenSplitIds& ids);

// The kind of a plan for a mini-suite task, by its first words. The share of fused plans is
// fused / (fused + split), because a single operator cannot be fused.
enum class PlanKind {
  kFused,   // "fuse a b c in one kernel, ..."
  kSplit,   // "two kernels: a then b c, ..." or "three kernels: ..."
  kSingle,  // "one kernel for a, ...": the task is a single operator
  kOther,   // any other text
};
PlanKind ClassifyPlan(absl::string_view plan);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_PROMPT_FORMAT_H_
