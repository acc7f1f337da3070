#include "tools/kernelbook/python_parts.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tritonrl {
namespace {

template <size_t N>
bool In(absl::string_view text, const absl::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

}  // namespace

bool IsOperation(absl::string_view type) {
  constexpr absl::string_view kTypes[] = {
      "binary_operator",        "unary_operator", "not_operator", "boolean_operator",
      "comparison_operator",    "lambda",         "await",        "named_expression",
      "conditional_expression",
  };
  return In(type, kTypes);
}

bool IsTuple(absl::string_view type) {
  constexpr absl::string_view kTypes[] = {"tuple", "expression_list", "tuple_pattern",
                                          "pattern_list"};
  return In(type, kTypes);
}

std::vector<PythonNode> WithoutComments(const std::vector<PythonNode>& nodes) {
  std::vector<PythonNode> kept;
  for (const PythonNode& node : nodes) {
    if (!Is(node, "comment") && !Is(node, "line_continuation")) kept.push_back(node);
  }
  return kept;
}

PythonNode BaseConstructorArguments(const PythonNode& statement) {
  if (!Is(statement, "expression_statement") || statement.child_count() != 1) return {};
  const PythonNode call = statement.child(0), function = call.field("function");
  if (!Is(call, "call") || function.field("attribute").text() != "__init__") return {};
  const PythonNode object = function.field("object");
  const bool super = Is(object, "call") && object.field("function").text() == "super";
  return super ? call.field("arguments") : PythonNode();
}

bool HasNoEffect(const PythonNode& statement) {
  constexpr absl::string_view kLeftOut[] = {
      "comment",        "import_statement",  "import_from_statement",
      "pass_statement", "line_continuation", "future_import_statement"};
  if (In(statement.type(), kLeftOut)) return true;
  if (!Is(statement, "expression_statement") || statement.child_count() != 1) return false;
  const PythonNode only = statement.child(0);
  constexpr absl::string_view kConstants[] = {
      "string", "concatenated_string", "ellipsis", "integer", "float", "none", "true", "false"};
  if (In(only.type(), kConstants)) return true;
  if (Is(only, "assignment") && only.field("right").null()) return true;
  // nn.Module.__init__(self) is the old form of super().__init__().
  if (Is(only, "call") && absl::EndsWith(only.field("function").text(), "Module.__init__"))
    return true;
  const PythonNode arguments = BaseConstructorArguments(statement);
  return !arguments.null() && WithoutComments(arguments.named_children()).empty();
}

PythonNode EnclosingClass(PythonNode node) {
  while (!node.null() && !Is(node, "class_definition")) node = node.parent();
  return node;
}

bool IsTrivialConstructor(const PythonNode& function) {
  if (function.field("name").text() != "__init__") return false;
  if (EnclosingClass(function).null()) return false;
  std::vector<std::string> parameters;
  for (const PythonNode& part : WithoutComments(function.field("parameters").named_children())) {
    const bool typed = Is(part, "typed_parameter") && part.child_count() > 0;
    parameters.emplace_back(typed ? part.child(0).text() : part.text());
  }
  if (parameters.empty()) return false;
  std::vector<PythonNode> rest;
  for (const PythonNode& statement : function.field("body").named_children()) {
    if (!HasNoEffect(statement)) rest.push_back(statement);
  }
  if (rest.empty()) return parameters.size() == 1;  // others refuse or take arguments
  if (rest.size() > 1) return false;
  const PythonNode arguments = BaseConstructorArguments(rest[0]);
  if (arguments.null()) return false;
  std::vector<std::string> passed = {parameters[0]};
  for (const PythonNode& part : WithoutComments(arguments.named_children())) {
    passed.emplace_back(part.text());
  }
  return passed == parameters;
}

std::string Number(const PythonNode& node) {
  const std::string text = absl::StrReplaceAll(absl::AsciiStrToLower(node.text()), {{"_", ""}});
  if (text.empty() || text.size() > 40 || text.back() == 'j') return text;
  char* end = nullptr;
  if (Is(node, "float")) {
    const double value = std::strtod(text.c_str(), &end);
    return *end == '\0' ? absl::StrFormat("f%.17g", value) : text;
  }
  const bool octal = absl::StartsWith(text, "0o"), binary = absl::StartsWith(text, "0b");
  if (text.size() > 18) return text;
  const unsigned long long value = std::strtoull(text.c_str() + (octal || binary ? 2 : 0), &end,
                                                 octal                          ? 8
                                                 : binary                       ? 2
                                                 : absl::StartsWith(text, "0x") ? 16
                                                                                : 10);
  return *end == '\0' ? absl::StrCat(value) : text;
}

PythonLiteral LiteralOf(absl::string_view text) {
  PythonLiteral literal;
  size_t begin = 0;
  while (begin < text.size() && text[begin] != '"' && text[begin] != '\'') {
    literal.prefix.push_back(absl::ascii_tolower(static_cast<unsigned char>(text[begin++])));
  }
  absl::string_view quoted = text.substr(begin);
  const size_t quotes =
      absl::StartsWith(quoted, "\"\"\"") || absl::StartsWith(quoted, "'''") ? 3 : 1;
  if (quoted.size() < 2 * quotes) return {literal.prefix, std::string(quoted)};
  literal.content = std::string(quoted.substr(quotes, quoted.size() - 2 * quotes));
  const auto drop = [&](char c) {
    literal.prefix.erase(std::remove(literal.prefix.begin(), literal.prefix.end(), c),
                         literal.prefix.end());
  };
  drop('u');
  if (!absl::StrContains(literal.content, "\\")) drop('r');
  if (!absl::StrContains(literal.content, "{") && !absl::StrContains(literal.content, "}"))
    drop('f');
  if (!absl::StrContains(literal.prefix, "r")) {
    literal.content = absl::StrReplaceAll(
        literal.content, {{"\\\\", "\\\\"}, {"\\'", "'"}, {"\\\"", "\""}, {"\\\n", ""}});
  }
  return literal;
}

}  // namespace tritonrl
