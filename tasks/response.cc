#include "tasks/response.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tritonrl {
namespace {

constexpr absl::string_view kThinkOpen = "<think>";
constexpr absl::string_view kThinkClose = "</think>";

struct CodeBlock {
  std::string code;
  bool closed = false;
};

struct Blocks {
  std::vector<CodeBlock> code;
  std::string outside;     // the lines that lie in no block
  bool ends_open = false;  // the last block of any language has no closing fence
};

// The length of the fence (three or more back-ticks, indented by at most three spaces) a line
// starts with, 0 if none; `info` gets what follows it.
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
  size_t open_ticks = 0;  // of the block we are in; 0: in none
  bool keep = false;      // the block's language is one we take
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
      // An end-of-text token ("<|endoftext|>") may be decoded right behind the closing fence.
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
