#include "tasks/response_style.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {

namespace {

using Plan = ResponseStyle::Plan;
using CodeBlock = ResponseStyle::CodeBlock;

constexpr Plan kPlans[] = {Plan::kThinking, Plan::kPlain};
constexpr CodeBlock kCodeBlocks[] = {CodeBlock::kOnly, CodeBlock::kFirst, CodeBlock::kLast,
                                     CodeBlock::kJoined};

constexpr absl::string_view kAuto = "auto";

CodeBlock DefaultCodeBlock(Plan plan) {
  return plan == Plan::kThinking ? CodeBlock::kOnly : CodeBlock::kFirst;
}

bool MentionsThink(absl::string_view text) {
  return absl::StrContains(text, "<think>") || absl::StrContains(text, "</think>");
}

ResponseStyleChoice MakeChoice(Plan plan, std::string reason) {
  return {.style = {.plan = plan, .code_block = DefaultCodeBlock(plan)},
          .reason = std::move(reason)};
}

absl::StatusOr<std::optional<Plan>> ParsePlan(absl::string_view name) {
  if (name == kAuto) return std::nullopt;
  for (const Plan plan : kPlans) {
    if (name == PlanStyleName(plan)) return plan;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "response_style \"", name, "\" is unknown; use \"auto\", \"thinking\" or \"plain\""));
}

absl::StatusOr<std::optional<CodeBlock>> ParseCodeBlock(absl::string_view name) {
  if (name == kAuto) return std::nullopt;
  for (const CodeBlock code_block : kCodeBlocks) {
    if (name == CodeBlockName(code_block)) return code_block;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("code_block \"", name,
                   "\" is unknown; use \"auto\", \"only\", \"first\", \"last\" or \"joined\""));
}

}  // namespace

absl::string_view PlanStyleName(Plan plan) {
  return plan == Plan::kThinking ? "thinking" : "plain";
}

absl::string_view CodeBlockName(CodeBlock code_block) {
  switch (code_block) {
    case CodeBlock::kOnly:
      return "only";
    case CodeBlock::kFirst:
      return "first";
    case CodeBlock::kLast:
      return "last";
    case CodeBlock::kJoined:
      break;
  }
  return "joined";
}

std::string ResponseStyleChoice::Sentence() const {
  return absl::StrCat("Responses are read as ", PlanStyleName(style.plan), " (", reason,
                      "), code block: ", CodeBlockName(style.code_block));
}

absl::StatusOr<ResponseStyleChoice> DetectResponseStyle(const std::string& model_dir,
                                                        absl::string_view chat_template,
                                                        absl::string_view prompt) {
  prompt = absl::StripTrailingAsciiWhitespace(prompt);
  if (absl::EndsWith(prompt, "<think>")) {
    return MakeChoice(Plan::kThinking, "the prompt ends with <think>");
  }
  if (absl::EndsWith(prompt, "</think>")) {
    return MakeChoice(Plan::kPlain, "the prompt ends with </think>");
  }
  if (!chat_template.empty()) {
    if (absl::StrContains(chat_template, "<think>")) {
      return MakeChoice(Plan::kThinking, "its chat template has <think>");
    }
    if (!absl::StrContains(chat_template, "</think>")) {
      return MakeChoice(Plan::kPlain, "its chat template has no </think>");
    }
    // It may only cut thoughts out of earlier turns, as templates of plain models do too.
    return absl::InvalidArgumentError(
        "response_style \"auto\" cannot tell how this model responds, because its chat template "
        "has </think> but no <think>; set \"thinking\" or \"plain\"");
  }
  const std::string path = JoinPath(model_dir, "tokenizer.json");
  std::string tokenizer;
  if (FileExists(path)) {
    ASSIGN_OR_RETURN(tokenizer, ReadFile(path));
  }
  return MentionsThink(tokenizer)
             ? MakeChoice(Plan::kThinking, "its tokenizer.json has <think> or </think>")
             : MakeChoice(Plan::kPlain, "its tokenizer.json has no </think>");
}

absl::StatusOr<ResponseStyleChoice> ChooseResponseStyle(absl::string_view response_style,
                                                        absl::string_view code_block,
                                                        const std::string& model_dir,
                                                        absl::string_view chat_template,
                                                        absl::string_view prompt) {
  RETURN_IF_ERROR(CheckResponseStyleNames(response_style, code_block));
  ResponseStyleChoice choice = {.reason = "as configured"};
  if (response_style == kAuto) {
    ASSIGN_OR_RETURN(choice, DetectResponseStyle(model_dir, chat_template, prompt));
  }
  ASSIGN_OR_RETURN(choice.style, OverrideResponseStyle(response_style, code_block, choice.style));
  return choice;
}

absl::Status CheckResponseStyleNames(absl::string_view response_style,
                                     absl::string_view code_block) {
  RETURN_IF_ERROR(ParsePlan(response_style).status());
  return ParseCodeBlock(code_block).status();
}

absl::StatusOr<ResponseStyle> OverrideResponseStyle(absl::string_view response_style,
                                                    absl::string_view code_block,
                                                    const ResponseStyle& base) {
  ASSIGN_OR_RETURN(const std::optional<Plan> plan, ParsePlan(response_style));
  ASSIGN_OR_RETURN(const std::optional<CodeBlock> block, ParseCodeBlock(code_block));
  ResponseStyle style = base;
  if (plan.has_value()) style = {.plan = *plan, .code_block = DefaultCodeBlock(*plan)};
  if (block.has_value()) style.code_block = *block;
  return style;
}

absl::StatusOr<ResponseStyle> ResponseStyleFromNames(absl::string_view plan,
                                                     absl::string_view code_block) {
  if (plan == kAuto || code_block == kAuto) {
    return absl::InvalidArgumentError("a recorded response style is \"auto\", which is no style");
  }
  return OverrideResponseStyle(plan, code_block, ResponseStyle());
}

}  // namespace tritonrl
