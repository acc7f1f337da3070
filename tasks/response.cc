#include "tasks/response.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tritonrl {

namespace {

constexpr absl::string_view kThinkOpen = "<think>";
constexpr absl::string_view kThinkClose = "</think>";

using CodeBlockRule = ResponseStyle::CodeBlock;

struct CodeBlock {
  std::string code;
  bool closed = false;
};

struct Blocks {
  std::vector<CodeBlock> code;
  std::optional<size_t> first;        // offset of the line that opens the first code block
  std::string outside;                // the lines outside of blocks
  std::optional<size_t> think_close;  // offset of the first `</think>` outside of blocks
  bool ends_open = false;             // the last block of any language has no closing fence
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
  for (size_t at = 0, next = 0; at < text.size(); at = next) {
    const size_t newline = text.find('\n', at);
    const bool has_newline = newline != absl::string_view::npos;
    next = has_newline ? newline + 1 : text.size();
    const absl::string_view line = text.substr(at, (has_newline ? newline : next) - at);
    absl::string_view info;
    const size_t ticks = FenceLength(line, &info);
    if (open_ticks == 0) {
      if (ticks > 0 && !absl::StrContains(info, '`')) {
        open_ticks = ticks;
        keep = IsCodeLanguage(info);
        if (keep) blocks.code.emplace_back();
        if (keep && !blocks.first.has_value()) blocks.first = at;
      } else {
        absl::StrAppend(&blocks.outside, line, "\n");
        const size_t close = line.find(kThinkClose);
        if (close != absl::string_view::npos && !blocks.think_close.has_value()) {
          blocks.think_close = at + close;
        }
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

bool StartsWithThink(absl::string_view text) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), kThinkOpen);
}

// Offset after the `</think>` that closes the plan. A plain response may mention the tag in its
// code, so there it counts outside of code blocks only, unless the response begins with `<think>`.
std::optional<size_t> ThinkEnd(absl::string_view text, const ResponseStyle& style) {
  std::optional<size_t> close;
  if (style.plan == ResponseStyle::Plan::kThinking || StartsWithThink(text)) {
    const size_t found = text.find(kThinkClose);
    if (found != absl::string_view::npos) close = found;
  } else if (absl::StrContains(text, kThinkClose)) {
    close = FindBlocks(text).think_close;
  }
  if (close.has_value()) *close += kThinkClose.size();
  return close;
}

// The program that a style's rule takes from the blocks, and whether it may lack its end.
struct Program {
  std::string code;
  bool open = false;
};

Program TakeProgram(const Blocks& blocks, CodeBlockRule rule) {
  if (rule == CodeBlockRule::kOnly) {
    return {.code = blocks.code.empty() ? "" : blocks.code.back().code, .open = blocks.ends_open};
  }
  Program program;
  for (const CodeBlock& block : blocks.code) {
    if (IsBlank(block.code)) continue;
    if (rule == CodeBlockRule::kLast) program.code.clear();
    program.code += block.code;  // ends with a newline, unless the block is the unclosed last one
    program.open = !block.closed;
    if (rule == CodeBlockRule::kFirst) break;
  }
  return program;
}

// The shape of a response whose plan has ended. `cut`: the length limit may have removed a part of
// the program.
ResponseShape ShapeOf(const Blocks& blocks, const Program& program, const ResponseStyle& style,
                      bool cut) {
  const bool no_code = IsBlank(program.code);
  if (cut && (program.open || no_code)) return ResponseShape::kTruncated;
  if (style.plan == ResponseStyle::Plan::kThinking &&
      absl::StrContains(blocks.outside, kThinkClose)) {
    return ResponseShape::kRepeatedThink;
  }
  if (style.code_block == CodeBlockRule::kOnly && blocks.code.size() > 1) {
    return ResponseShape::kTwoCodeBlocks;
  }
  if (no_code) return ResponseShape::kNoCode;
  return program.open ? ResponseShape::kUnclosedCode : ResponseShape::kOk;
}

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

absl::string_view DescribeShape(ResponseShape shape) {
  switch (shape) {
    case ResponseShape::kOk:
      return "";
    case ResponseShape::kEmpty:
      return "is empty";
    case ResponseShape::kNoThinkClose:
      return "does not close its plan with </think>";
    case ResponseShape::kRepeatedThink:
      return "has a second </think> outside of its code";
    case ResponseShape::kNoCode:
      return "has no code block after its plan";
    case ResponseShape::kUnclosedCode:
      return "has a code block without a closing fence";
    case ResponseShape::kTwoCodeBlocks:
      return "has several code blocks after its plan";
    case ResponseShape::kTruncated:
      return "was cut off at the length limit before the end of its program";
  }
  return "has an unknown shape";
}

SplitResponse ReadResponse(absl::string_view text, const ResponseStyle& style, bool truncated) {
  SplitResponse split;
  if (IsBlank(text)) {
    split.shape = truncated ? ResponseShape::kTruncated : ResponseShape::kEmpty;
    return split;
  }
  const std::optional<size_t> think_end = ThinkEnd(text, style);
  const bool needs_close = style.plan == ResponseStyle::Plan::kThinking || StartsWithThink(text);
  const Blocks blocks = FindBlocks(text.substr(think_end.value_or(0)));
  absl::string_view plan = text;
  if (think_end.has_value()) {
    plan = text.substr(0, *think_end - kThinkClose.size());
  } else if (!needs_close) {
    plan = text.substr(0, blocks.first.value_or(text.size()));
  }
  plan = absl::StripLeadingAsciiWhitespace(plan);
  absl::ConsumePrefix(&plan, kThinkOpen);
  split.plan = std::string(absl::StripAsciiWhitespace(plan));
  if (needs_close && !think_end.has_value()) {
    split.shape = truncated ? ResponseShape::kTruncated : ResponseShape::kNoThinkClose;
    return split;
  }
  Program program = TakeProgram(blocks, style.code_block);
  // A later block may have been cut off, unless the first one is the program.
  const bool whole = style.code_block == CodeBlockRule::kFirst && !program.open;
  if (blocks.ends_open && truncated && !whole) program.open = true;
  split.shape = ShapeOf(blocks, program, style, truncated);
  if (split.shape != ResponseShape::kNoCode) split.code = std::move(program.code);
  return split;
}

std::optional<size_t> PlanBytes(absl::string_view text, const ResponseStyle& style) {
  const std::optional<size_t> think_end = ThinkEnd(text, style);
  if (think_end.has_value() || style.plan == ResponseStyle::Plan::kThinking ||
      StartsWithThink(text)) {
    return think_end;
  }
  return FindBlocks(text).first;
}

int CountPlanTokens(absl::Span<const size_t> token_ends, std::optional<size_t> plan_bytes) {
  if (!plan_bytes.has_value()) return static_cast<int>(token_ends.size());
  if (*plan_bytes == 0) return 0;
  const auto last = std::lower_bound(token_ends.begin(), token_ends.end(), *plan_bytes);
  return static_cast<int>(last - token_ends.begin() + (last != token_ends.end() ? 1 : 0));
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
