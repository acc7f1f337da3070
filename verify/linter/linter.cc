#include "verify/linter/linter.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/ast.h"
#include "verify/linter/certain_compute.h"
#include "verify/linter/forbidden.h"
#include "verify/linter/program.h"
#include "verify/linter/structure.h"

namespace tritonrl {
namespace {

bool IsSyntaxRule(LintRule rule) { return rule <= LintRule::kTooLarge; }

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

// The first carriage return that no line feed follows; npos without one.
size_t LoneCarriageReturn(absl::string_view source) {
  size_t place = source.find('\r');
  while (place != absl::string_view::npos && place + 1 < source.size() && source[place + 1] == '\n')
    place = source.find('\r', place + 1);
  return place + 1 < source.size() ? place : absl::string_view::npos;
}

// What Python reads in another way than the parser here.
void FindReadDifferently(absl::string_view source, LintResult* result) {
  const size_t lone = LoneCarriageReturn(source);
  size_t start = 0;
  for (int line = 1; line <= 2 && start <= source.size(); ++line) {
    const size_t end = std::min(source.find('\n', start), source.size());
    if (lone < end) break;
    const absl::string_view encoding = NamedEncoding(source.substr(start, end - start));
    const std::string lower = absl::AsciiStrToLower(encoding);
    if (!encoding.empty() && lower != "utf-8" && lower != "utf8" && lower != "utf_8" &&
        lower != "ascii" && lower != "us-ascii") {
      result->findings.push_back(
          {LintRule::kForbidden, line, std::string(encoding),
           absl::StrCat("a source file in the encoding '", encoding, "' is refused, use UTF-8")});
    }
    start = end + 1;
  }
  if (lone == absl::string_view::npos) return;
  const auto lines = std::count(source.begin(), source.begin() + static_cast<int64_t>(lone), '\n');
  result->findings.push_back({LintRule::kForbidden, static_cast<int>(lines) + 1, "carriage return",
                              "a carriage return without a line feed hides a line"});
}

}  // namespace

absl::string_view LintRuleName(LintRule rule) {
  // In the order of LintRule.
  constexpr absl::string_view kNames[] = {"parse_error",   "no_kernel",      "no_model",
                                          "no_code",       "too_large",      "forbidden",
                                          "torch_compute", "kernel_not_used"};
  const auto number = static_cast<size_t>(rule);
  return number < std::size(kNames) ? kNames[number] : "unknown";
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
  const lint::Program program(ast.root());
  lint::FindForbidden(program, &result);
  lint::FindMissingParts(program, &result);
  if (!result.syntax_ok()) return result;
  lint::FindCertainCompute(program, &result);
  lint::FindUnusedKernels(program, &result);
  return result;
}

}  // namespace tritonrl
