#include "verify/linter/linter.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/ast.h"
#include "verify/linter/forbidden.h"
#include "verify/linter/interpreter.h"

namespace tritonrl {
namespace {

bool IsSyntaxRule(LintRule rule) {
  switch (rule) {
    case LintRule::kParseError:
    case LintRule::kNoKernel:
    case LintRule::kNoModel:
    case LintRule::kNoCode:
    case LintRule::kTooLarge:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::string_view LintRuleName(LintRule rule) {
  switch (rule) {
    case LintRule::kParseError:
      return "parse_error";
    case LintRule::kNoKernel:
      return "no_kernel";
    case LintRule::kNoModel:
      return "no_model";
    case LintRule::kNoCode:
      return "no_code";
    case LintRule::kTooLarge:
      return "too_large";
    case LintRule::kForbidden:
      return "forbidden";
    case LintRule::kTorchCompute:
      return "torch_compute";
    case LintRule::kPythonCompute:
      return "python_compute";
    case LintRule::kKernelNotUsed:
      return "kernel_not_used";
    case LintRule::kHardCoded:
      return "hard_coded";
    case LintRule::kTrivialKernel:
      return "trivial_kernel";
    case LintRule::kUnresolved:
      return "unresolved";
  }
  return "unknown";
}

bool LintResult::syntax_ok() const {
  for (const LintFinding& finding : findings) {
    if (IsSyntaxRule(finding.rule)) return false;
  }
  return true;
}

LintResult Lint(absl::string_view source) {
  LintResult result;
  if (absl::StripAsciiWhitespace(source).empty()) {
    result.findings.push_back({LintRule::kNoCode, 1, "program", "the program is empty"});
    return result;
  }
  lint::Ast ast;
  if (!ast.Parse(source)) {
    if (ast.too_large) {
      result.findings.push_back(
          {LintRule::kTooLarge, 1, "program", "the program is too large or too deeply nested"});
    } else {
      result.findings.push_back({LintRule::kParseError, ast.error_line, "syntax",
                                 absl::StrCat("not valid Python: ", ast.error_text)});
    }
    return result;
  }
  lint::FindForbidden(ast.root(), &result);
  lint::Interpreter(&ast, &result).Run();
  return result;
}

}  // namespace tritonrl
