#include "tasks/prompt_format.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/python_syntax.h"

namespace tritonrl {

namespace {

// True for a statement that is only a string, e.g. a documentation string.
bool IsBareString(const PythonNode& statement) {
  return statement.type() == "expression_statement" && statement.child_count() == 1 &&
         statement.child(0).type() == "string";
}

// True for pass, and for a call of super().__init__ in any spelling.
bool IsBoilerplate(const PythonNode& statement) {
  return statement.type() == "pass_statement" || (statement.type() == "expression_statement" &&
                                                  absl::StartsWith(statement.text(), "super("));
}

// Returns the lines of `node` without comments and empty lines; the indentation of the first line
// is removed from all lines.
std::string CompactText(const PythonTree& tree, const PythonNode& node) {
  std::string text;
  size_t at = node.start_byte();
  for (const PythonNode& comment : node.Find("comment")) {
    absl::StrAppend(&text, tree.source().substr(at, comment.start_byte() - at));
    at = comment.end_byte();
  }
  absl::StrAppend(&text, tree.source().substr(at, node.end_byte() - at));
  const size_t indent = node.column() - 1;
  std::string compact;
  bool first = true;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!first) {
      const size_t spaces = std::min(line.find_first_not_of(" \t"), line.size());
      line.remove_prefix(std::min(indent, spaces));
    }
    first = false;
    line = absl::StripTrailingAsciiWhitespace(line);
    if (!line.empty()) absl::StrAppend(&compact, line, "\n");
  }
  return compact;
}

// Appends the statements of a block without documentation, comments and boilerplate.
void AppendBody(const PythonTree& tree, const PythonNode& block, std::string* out) {
  for (const PythonNode& statement : block.named_children()) {
    if (statement.type() == "comment" || IsBareString(statement) || IsBoilerplate(statement)) {
      continue;
    }
    absl::StrAppend(out, CompactText(tree, statement));
  }
}

// Appends the statements of get_inputs, without the word "return".
void AppendInputs(const PythonTree& tree, const PythonNode& block, std::string* out) {
  std::string body;
  AppendBody(tree, block, &body);
  for (absl::string_view line : absl::StrSplit(body, '\n', absl::SkipEmpty())) {
    absl::ConsumePrefix(&line, "return ");
    absl::StrAppend(out, line, "\n");
  }
}

void AppendModel(const PythonTree& tree, const PythonNode& body, std::string* out) {
  for (const char* name : {"__init__", "forward"}) {
    for (const PythonNode& member : body.named_children()) {
      if (member.type() == "function_definition" && member.field("name").text() == name) {
        AppendBody(tree, member.field("body"), out);
      }
    }
  }
}

std::string MiniPrompt(const std::string& source) {
  const PythonTree tree(source);
  std::string constants, model, inputs;
  for (const PythonNode& statement : tree.root().named_children()) {
    const absl::string_view type = statement.type();
    const absl::string_view name = statement.field("name").text();
    if (type == "class_definition" && name == "Model") {
      AppendModel(tree, statement.field("body"), &model);
    } else if (type == "function_definition" && name == "get_inputs") {
      AppendInputs(tree, statement.field("body"), &inputs);
    } else if (type == "comment" || type == "import_statement" || type == "import_from_statement" ||
               name == "get_init_inputs" || IsBareString(statement)) {
      continue;
    } else {
      absl::StrAppend(&constants, CompactText(tree, statement));
    }
  }
  return absl::StrCat(constants, model, inputs);
}

constexpr absl::string_view kInstruction =
    R"(Rewrite the PyTorch program below so that its work is done by Triton kernels that you write, and make it as fast as you can on one GPU. Fuse operators into few kernels where that saves memory traffic or launches, and choose block sizes that suit the shapes.

Rules for the program
- Define a class ModelNew(nn.Module) with the constructor and forward arguments of Model; it must return the same values, shapes and data types for every input that get_inputs can give.
- Do the computation inside functions decorated with @triton.jit that forward really launches. Outside of them only allocation, views, casts and the arithmetic of launch grids are allowed: no torch.nn or torch.nn.functional operator, no torch.matmul, no @, no tensor arithmetic.
- Nothing may be hard-coded from example inputs, and no part of the computation may be left out.
- Parameters and buffers: create them in the constructor as Model does, in the same order and with the same names.

Rules for the response
- First reason about the kernels inside <think> and </think>: what to fuse, the memory access pattern, masks, block sizes.
- Then write exactly one code block, opened by a line ```python and closed by a line ```. It holds the complete module with its imports and nothing else: no test code, no second block.

Example of a program:
)";

constexpr absl::string_view kExampleReference = R"(import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, y):
        return torch.relu(x * self.scale + y)


def get_inputs():
    return [torch.randn(64, 1000), torch.randn(64, 1000)]


def get_init_inputs():
    return [0.5]
)";

constexpr absl::string_view kExampleResponse = R"(<think>
The three operators work element by element on tensors of one shape, so one kernel can load x and y once and store once. 64000 elements are no multiple of the block size, so loads and stores need a mask.
</think>
```python
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_add_relu_kernel(x_ptr, y_ptr, out_ptr, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.maximum(x * scale + y, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        n = x.numel()
        grid = (triton.cdiv(n, 1024),)
        scale_add_relu_kernel[grid](x, y, out, self.scale, n, BLOCK=1024)
        return out
```
)";

std::string FullPrompt(const std::string& source) {
  return absl::StrCat(kInstruction, "```python\n", kExampleReference,
                      "```\n\nExample of a response:\n", kExampleResponse,
                      "\nNow the program to rewrite:\n```python\n",
                      absl::StripTrailingAsciiWhitespace(source), "\n```\n");
}

}  // namespace

absl::StatusOr<PromptStyle> ParsePromptStyle(const std::string& name) {
  if (name == "mini") return PromptStyle::kMini;
  if (name == "full") return PromptStyle::kFull;
  return absl::InvalidArgumentError(
      absl::StrCat("prompt style \"", name, "\" is unknown; use \"mini\" or \"full\""));
}

std::string BuildPrompt(const Task& task, PromptStyle style) {
  return style == PromptStyle::kMini ? MiniPrompt(task.source) : FullPrompt(task.source);
}

namespace {

constexpr absl::string_view kThinkOpen = "<think>";
constexpr absl::string_view kThinkClose = "</think>";

struct CodeBlock {
  std::string code;
  bool closed = false;
};

struct Blocks {
  std::vector<CodeBlock> code;
  std::string outside;     // the lines outside of blocks
  bool ends_open = false;  // the last block of any language has no closing fence
};

// Returns the length of the fence (three or more back-ticks, indented by at most three spaces) at
// the start of a line, or 0 if there is none; sets `info` to the rest of the line.
size_t FenceLength(absl::string_view line, absl::string_view* info) {
  size_t indent = 0;
  while (indent < line.size() && indent < 3 && line[indent] == ' ') ++indent;
  line.remove_prefix(indent);
  const size_t ticks = std::min(line.find_first_not_of('`'), line.size());
  if (ticks < 3) return 0;
  *info = absl::StripAsciiWhitespace(line.substr(ticks));
  return ticks;
}

bool IsCodeLanguage(absl::string_view info) {
  const std::string language = absl::AsciiStrToLower(info.substr(0, info.find_first_of(" \t{,")));
  return language.empty() || language == "python" || language == "py" || language == "python3" ||
         language == "triton";
}

Blocks FindBlocks(absl::string_view text) {
  Blocks blocks;
  size_t open_ticks = 0;  // fence length of the open block; 0: no block is open
  bool keep = false;      // the open block has an accepted language
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const absl::string_view line = text.substr(0, newline);
    const bool has_newline = newline != absl::string_view::npos;
    text.remove_prefix(has_newline ? newline + 1 : text.size());
    absl::string_view info;
    const size_t ticks = FenceLength(line, &info);
    if (open_ticks == 0) {
      if (ticks > 0 && !absl::StrContains(info, '`')) {
        open_ticks = ticks;
        keep = IsCodeLanguage(info);
        if (keep) blocks.code.emplace_back();
      } else {
        absl::StrAppend(&blocks.outside, line, "\n");
      }
    } else if (ticks >= open_ticks && (info.empty() || info[0] == '<')) {
      // An end-of-text token ("<|endoftext|>") may follow the closing fence on its line.
      if (keep) blocks.code.back().closed = true;
      open_ticks = 0;
      absl::StrAppend(&blocks.outside, info, "\n");
    } else if (keep) {
      absl::StrAppend(&blocks.code.back().code, line, has_newline ? "\n" : "");
    }
  }
  blocks.ends_open = open_ticks > 0;
  return blocks;
}

bool IsBlank(absl::string_view text) { return absl::StripAsciiWhitespace(text).empty(); }

}  // namespace

absl::string_view ResponseShapeName(ResponseShape shape) {
  switch (shape) {
    case ResponseShape::kOk:
      return "ok";
    case ResponseShape::kEmpty:
      return "empty";
    case ResponseShape::kNoThinkClose:
      return "no_think_close";
    case ResponseShape::kRepeatedThink:
      return "repeated_think";
    case ResponseShape::kNoCode:
      return "no_code";
    case ResponseShape::kUnclosedCode:
      return "unclosed_code";
    case ResponseShape::kTwoCodeBlocks:
      return "two_code_blocks";
    case ResponseShape::kTruncated:
      return "truncated";
  }
  return "unknown";
}

SplitResponse SplitResponseText(absl::string_view text, bool truncated) {
  SplitResponse split;
  if (IsBlank(text)) {
    split.shape = truncated ? ResponseShape::kTruncated : ResponseShape::kEmpty;
    return split;
  }
  absl::string_view body = absl::StripLeadingAsciiWhitespace(text);
  absl::ConsumePrefix(&body, kThinkOpen);
  const size_t close = body.find(kThinkClose);
  split.plan = std::string(absl::StripAsciiWhitespace(body.substr(0, close)));
  if (close == absl::string_view::npos) {
    split.shape = truncated ? ResponseShape::kTruncated : ResponseShape::kNoThinkClose;
    return split;
  }
  const Blocks blocks = FindBlocks(body.substr(close + kThinkClose.size()));
  if (!blocks.code.empty()) split.code = blocks.code.back().code;
  const bool no_code = IsBlank(split.code);
  if (truncated && (blocks.ends_open || no_code)) {
    split.shape = ResponseShape::kTruncated;
  } else if (absl::StrContains(blocks.outside, kThinkClose)) {
    split.shape = ResponseShape::kRepeatedThink;
  } else if (blocks.code.size() > 1) {
    split.shape = ResponseShape::kTwoCodeBlocks;
  } else if (no_code) {
    split.shape = ResponseShape::kNoCode;
    split.code.clear();
  } else if (blocks.ends_open) {
    split.shape = ResponseShape::kUnclosedCode;
  } else {
    split.shape = ResponseShape::kOk;
  }
  return split;
}

TokenSplit SplitTokens(absl::Span<const int32_t> tokens, const TokenSplitIds& ids) {
  TokenSplit split;
  const auto found = ids.think_close.empty()
                         ? tokens.end()
                         : std::search(tokens.begin(), tokens.end(), ids.think_close.begin(),
                                       ids.think_close.end());
  split.has_think_close = found != tokens.end();
  split.plan_end = split.has_think_close
                       ? static_cast<int>(found - tokens.begin() + ids.think_close.size())
                       : static_cast<int>(tokens.size());
  return split;
}

PlanKind ClassifyPlan(absl::string_view plan) {
  plan = absl::StripLeadingAsciiWhitespace(plan);
  if (absl::StartsWith(plan, "fuse ")) return PlanKind::kFused;
  if (absl::StartsWith(plan, "one kernel for ")) return PlanKind::kSingle;
  if (absl::StartsWith(plan, "two kernels: ") || absl::StartsWith(plan, "three kernels: ")) {
    return PlanKind::kSplit;
  }
  return PlanKind::kOther;
}

}  // namespace tritonrl
