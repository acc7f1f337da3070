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

// The encoding that a comment in one of the first two lines names; empty without one. Python reads
// the file in it, and some encodings turn comments into code.
absl::string_view NamedEncoding(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  const size_t place = line.find("coding");
  if (line.empty() || line[0] != '#' || place == absl::string_view::npos) return "";
  line.remove_prefix(place + 6);
  if (line.empty() || (line[0] != ':' && line[0] != '=')) return "";
  line = absl::StripLeadingAsciiWhitespace(line.substr(1));
  size_t length = 0;
  while (length < line.size() && (absl::ascii_isalnum(line[length]) || line[length] == '-' ||
                                  line[length] == '_' || line[length] == '.'))
    ++length;
  return line.substr(0, length);
}

// What Python reads in another way than the parser here.
void FindReadDifferently(absl::string_view source, LintResult* result) {
  int line = 1;
  size_t start = 0;
  for (size_t i = 0; i <= source.size(); ++i) {
    if (i < source.size() && source[i] == '\r' && i + 1 < source.size() && source[i + 1] != '\n') {
      result->findings.push_back({LintRule::kForbidden, line, "carriage return",
                                  "a carriage return without a line feed hides a line"});
      return;
    }
    if (i < source.size() && source[i] != '\n') continue;
    const absl::string_view encoding =
        line <= 2 ? NamedEncoding(source.substr(start, i - start)) : absl::string_view();
    const std::string lower = absl::AsciiStrToLower(encoding);
    if (!encoding.empty() && lower != "utf-8" && lower != "utf8" && lower != "utf_8" &&
        lower != "ascii" && lower != "us-ascii") {
      result->findings.push_back(
          {LintRule::kForbidden, line, std::string(encoding),
           absl::StrCat("a source file in the encoding '", encoding, "' is refused, use UTF-8")});
    }
    start = i + 1;
    ++line;
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
  FindReadDifferently(source, &result);
  lint::FindForbidden(ast.root(), &result);
  lint::Interpreter(&ast, &result).Run();
  return result;
}

}  // namespace tritonrl
