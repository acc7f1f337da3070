// Reads the responses of a model: plan and code by a named style, and the tokens of each.
#ifndef TRITONRL_TASKS_RESPONSE_H_
#define TRITONRL_TASKS_RESPONSE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tritonrl {

// How the responses of a model are read. The default is that of the paper's policies.
struct ResponseStyle {
  enum class Plan {
    kThinking,  // The plan ends with `</think>`; a response without one is malformed.
    kPlain,     // No plan is needed. A response may have one, closed by `</think>`.
  };
  // Which of the code blocks after the plan are the program. Blank blocks count for kOnly alone.
  enum class CodeBlock {
    kOnly,    // The only one; a response with several is malformed.
    kFirst,   // The first one.
    kLast,    // The last one.
    kJoined,  // All of them, one after the other.
  };

  Plan plan = Plan::kThinking;
  CodeBlock code_block = CodeBlock::kOnly;

  bool operator==(const ResponseStyle&) const = default;
};

// The shape of a response. A code block stands between ``` lines, tagged python, python3, py,
// triton or untagged. Blocks in other languages, fences inside the plan and text around the code
// blocks are ignored. An opening `<think>` may be missing, because some chat templates put it into
// the prompt.
enum class ResponseShape {
  kOk,
  kEmpty,          // Only white space. plan and code are empty.
  kNoThinkClose,   // No `</think>`, although the style or an opening `<think>` asks for one: the
                   // whole response is plan, code is empty.
  kRepeatedThink,  // kThinking: a second `</think>` outside the code; plan ends at the first, code
                   // as for kOk.
  kNoCode,         // No code block after the plan, or only blank ones. code is empty.
  kUnclosedCode,   // The closing fence is missing: code extends to the end of the text.
  kTwoCodeBlocks,  // kOnly: several code blocks; code is the last one.
  kTruncated,      // The length limit cut the response before the end of the program; plan and
                   // code hold the text before the cut.
};

// Returns a stable lower-case name for logs and metrics: "ok", "no_think_close", ...
absl::string_view ResponseShapeName(ResponseShape shape);

// What is wrong with a response of this shape, to be read after "the response": "has no code
// block", ... Empty for kOk.
absl::string_view DescribeShape(ResponseShape shape);

struct SplitResponse {
  ResponseShape shape = ResponseShape::kEmpty;
  // Text before `</think>` without `<think>`, or else, in kPlain, before the first code block.
  // White space is trimmed.
  std::string plan;
  std::string code;  // Contents of the code blocks, without the fences.

  // Only the code of well-formed responses is verified; all others fail the syntax layer.
  bool valid() const { return shape == ResponseShape::kOk; }
};

// Reads a decoded response that includes its special tokens; an end-of-text token after a block is
// ignored. `truncated` means that generation reached its length limit; a complete response is kOk
// nevertheless.
SplitResponse ReadResponse(absl::string_view text, const ResponseStyle& style,
                           bool truncated = false);

// Number of bytes of `text` that belong to the plan: up to and with the first `</think>`, or in a
// kPlain response without one up to the line that opens the first code block. nullopt: the plan
// does not end, so all of the text belongs to it. `text` need not be valid UTF-8.
std::optional<size_t> PlanBytes(absl::string_view text, const ResponseStyle& style);

// Number of plan tokens of a response; all others, with the end-of-text token, are code tokens.
// `token_ends[i]` is the size in bytes of the text of tokens 0 to i (a token without text repeats
// the size before it), and `plan_bytes` is PlanBytes of the text of all tokens. Tokens are assigned
// by offset, so that `</think>` may consist of ordinary tokens and share some with its neighbours:
// the token with the last byte of the plan is the last plan token.
int CountPlanTokens(absl::Span<const size_t> token_ends, std::optional<size_t> plan_bytes);

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

#endif  // TRITONRL_TASKS_RESPONSE_H_
