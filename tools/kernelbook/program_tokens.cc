#include "tools/kernelbook/program_tokens.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "tools/kernelbook/python_parts.h"

namespace tritonrl {
namespace {

constexpr size_t kShingle = 5;  // tokens

}  // namespace

uint64_t ProgramTokens::Hash() const { return Hash64(absl::StrJoin(tokens_, "\n")); }

uint64_t ProgramTokens::LibraryHash() const {
  std::string all;
  for (const std::string& name : library_) absl::StrAppend(&all, name, "\n");
  return Hash64(all);
}

std::vector<uint64_t> ProgramTokens::Shingles() const {
  std::vector<uint64_t> shingles;
  for (size_t begin = 0; begin == 0 || begin + kShingle <= tokens_.size(); ++begin) {
    std::string text;
    std::map<std::string, size_t> numbers;
    for (size_t i = begin; i < std::min(begin + kShingle, tokens_.size()); ++i) {
      const std::string& token = tokens_[i];
      if (token[0] == '$')
        absl::StrAppend(&text, "$", numbers.emplace(token, numbers.size()).first->second, "\n");
      else
        absl::StrAppend(&text, token, "\n");
    }
    shingles.push_back(Hash64(text));
  }
  std::sort(shingles.begin(), shingles.end());
  shingles.erase(std::unique(shingles.begin(), shingles.end()), shingles.end());
  return shingles;
}

void ProgramTokens::Own(const std::string& key) {
  const size_t number = numbers_.emplace(key, numbers_.size()).first->second;
  Put(absl::StrCat("$", number));
}

// A name of a library, part by part.
void ProgramTokens::Library(const std::string& full_name) {
  constexpr absl::string_view kModules[] = {"torch", "nn", "functional", "Module", "Tensor"};
  constexpr absl::string_view kFunctional = "torch.nn.functional";
  std::string name = full_name;
  if (name == kFunctional || absl::StartsWith(name, absl::StrCat(kFunctional, "."))) {
    name = absl::StrCat("torch", name.substr(kFunctional.size()));
  }
  bool first = true;
  for (absl::string_view part : absl::StrSplit(name, '.')) {
    if (!first) Put(".");
    first = false;
    Put(part);
    if (std::find(std::begin(kModules), std::end(kModules), part) == std::end(kModules))
      library_.emplace(part);
  }
}

void ProgramTokens::Identifier(absl::string_view text) {
  const std::string name(text);
  if (names_.own.count(name) > 0) return Own("n:" + name);
  const auto imported = names_.imported.find(name);
  Library(imported == names_.imported.end() ? name : imported->second);
}

// The full name of `nn.functional.relu`, or "" if the node is not only names of a library.
std::string ProgramTokens::FullName(const PythonNode& node) const {
  std::vector<std::string> parts;
  PythonNode left = node;
  for (int depth = 0; Is(left, "attribute") && depth < kMaxProgramDepth; ++depth) {
    parts.emplace_back(left.field("attribute").text());
    left = left.field("object");
  }
  const std::string name(left.text());
  if (!Is(left, "identifier") || names_.own.count(name) > 0) return "";
  const auto imported = names_.imported.find(name);
  parts.push_back(imported == names_.imported.end() ? name : imported->second);
  std::reverse(parts.begin(), parts.end());
  return absl::StrJoin(parts, ".");
}

void ProgramTokens::Emit(const PythonNode& node, bool operand, int depth) {
  if (depth > kMaxProgramDepth || HasNoEffect(node) || IsAnnotation(node)) return;
  const absl::string_view type = node.type();
  if (type == "identifier") return Identifier(node.text());
  if (type == "string") return String(node, depth);
  if (type == "concatenated_string") return JoinedStrings(node, depth);
  if (type == "integer" || type == "float") return Put(Number(node));
  if (type == "attribute") return Attribute(node, depth);
  if (type == "subscript") return Subscript(node, depth);
  if (type == "call") return Call(node, depth);
  if (type == "class_definition") return Class(node, depth);
  if (type == "function_definition" && IsTrivialConstructor(node)) return;
  if (type == "parenthesized_expression") {
    for (const PythonNode& inner : node.named_children()) Emit(inner, operand, depth + 1);
    return;
  }
  if (IsTuple(type)) return Sequence(node, depth);
  const bool parentheses = operand && IsOperation(type);
  if (parentheses) Put("(");
  if (type == "block") Put("{");
  Children(node, depth);
  if (type == "block") Put("}");
  if (parentheses) Put(")");
}

void ProgramTokens::Children(const PythonNode& node, int depth) {
  const absl::string_view type = node.type();
  const std::vector<PythonNode> children = WithoutComments(node.children());
  if (children.empty()) return Leaf(node, node.parent().type());
  const bool annotated = type == "typed_parameter" || type == "typed_default_parameter" ||
                         (type == "assignment" && !node.field("type").null());
  for (size_t i = 0; i < children.size(); ++i) {
    const PythonNode& child = children[i];
    const absl::string_view mark = child.named() ? absl::string_view() : child.type();
    if (mark == "->" || mark == ";" || (annotated && mark == ":")) continue;
    if (mark == "," && i + 2 == children.size() && !children[i + 1].named()) continue;
    Emit(child, IsOperation(type), depth + 1);
  }
}

// A node without children. `parent` is the type of the node above.
void ProgramTokens::Leaf(const PythonNode& node, absl::string_view parent) {
  const std::string text(node.text());
  if (text.empty()) return;
  Put(text);
  if (!node.named() && absl::StrContains("+-*/%@<>=!&|^~", text.substr(0, 1)) &&
      (absl::EndsWith(parent, "operator") || parent == "augmented_assignment")) {
    library_.insert(text);
  }
}

// A tuple, with or without parentheses in the source.
void ProgramTokens::Sequence(const PythonNode& node, int depth) {
  Put("(");
  const std::vector<PythonNode> parts = WithoutComments(node.named_children());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) Put(",");
    Emit(parts[i], false, depth + 1);
  }
  if (parts.size() == 1) Put(",");
  Put(")");
}

// `class A:`, `class A():` and `class A(object):` are the same.
void ProgramTokens::Class(const PythonNode& node, int depth) {
  Put("class");
  Identifier(node.field("name").text());
  const PythonNode bases = node.field("superclasses");
  const std::vector<PythonNode> named = WithoutComments(bases.named_children());
  if (!named.empty() && !(named.size() == 1 && named[0].text() == "object")) {
    Arguments(bases, /*own_callee=*/false, depth + 1);
  }
  Emit(node.field("body"), false, depth + 1);
}

void ProgramTokens::String(const PythonNode& node, int depth) {
  bool interpolated = false;
  for (const PythonNode& part : node.named_children()) {
    interpolated = interpolated || Is(part, "interpolation");
  }
  if (!interpolated) {
    const PythonLiteral literal = LiteralOf(node.text());
    return Text(literal.prefix, literal.content);
  }
  Put("f\"");
  for (const PythonNode& part : node.named_children()) {
    if (Is(part, "interpolation"))
      Children(part, depth + 1);
    else if (Is(part, "string_content"))
      Put(part.text());
  }
  Put("\"");
}

void ProgramTokens::JoinedStrings(const PythonNode& node, int depth) {
  std::string content;
  const std::vector<PythonNode> parts = WithoutComments(node.named_children());
  for (const PythonNode& part : parts) {
    const PythonLiteral literal = LiteralOf(part.text());
    if (!literal.prefix.empty()) {
      for (const PythonNode& each : parts) Emit(each, false, depth + 1);
      return;
    }
    content += literal.content;
  }
  Text("", content);
}

// A text that is a name of the program, such as the key of a constructor's argument, is that name.
void ProgramTokens::Text(const std::string& prefix, const std::string& content) {
  if (prefix.empty() && names_.own.count(content) > 0) return Own("n:" + content);
  Put(absl::StrCat(prefix, "\"", content, "\""));
}

void ProgramTokens::Attribute(const PythonNode& node, int depth) {
  if (const std::string full = FullName(node); !full.empty()) return Library(full);
  const PythonNode object = node.field("object");
  const std::string name(node.field("attribute").text());
  Emit(object, /*operand=*/true, depth + 1);
  Put(".");
  if (object.text() == "self" && names_.attributes.count(name) > 0) return Own("a:" + name);
  Library(name);
}

void ProgramTokens::Call(const PythonNode& node, int depth) {
  const PythonNode function = node.field("function"), arguments = node.field("arguments");
  if (function.text() == "super" && Is(arguments, "argument_list")) {
    const std::vector<PythonNode> named = WithoutComments(arguments.named_children());
    const absl::string_view own = EnclosingClass(node).field("name").text();
    if (named.empty() || (named.size() == 2 && named[0].text() == own)) {
      for (const char* token : {"super", "(", ")"}) Put(token);
      return;
    }
  }
  Emit(function, /*operand=*/true, depth + 1);
  if (!Is(arguments, "argument_list")) return Emit(arguments, false, depth + 1);
  Arguments(arguments, names_.own.count(std::string(function.text())) > 0, depth + 1);
}

// `own_callee`: of a call of a function of this program, whose parameters' names are its own.
void ProgramTokens::Arguments(const PythonNode& node, bool own_callee, int depth) {
  if (depth > kMaxProgramDepth) return;
  Put("(");
  bool first = true;
  for (const PythonNode& child : WithoutComments(node.named_children())) {
    if (!first) Put(",");
    first = false;
    if (!Is(child, "keyword_argument")) {
      Emit(child, false, depth + 1);
      continue;
    }
    const std::string name(child.field("name").text());
    own_callee&& names_.own.count(name) > 0 ? Own("n:" + name) : Put(name);
    Put("=");
    Emit(child.field("value"), false, depth + 1);
  }
  Put(")");
}

// `x[0, 1]` and `x[(0, 1)]` are the same.
void ProgramTokens::Subscript(const PythonNode& node, int depth) {
  const PythonNode value = node.field("value");
  Emit(value, /*operand=*/true, depth + 1);
  std::vector<PythonNode> parts;
  bool comma = false;
  for (const PythonNode& child : WithoutComments(node.children())) {
    comma = comma || child.type() == ",";
    if (child.named() && !(child == value)) parts.push_back(child);
  }
  Put("[");
  if (comma) Put("(");
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) Put(",");
    Emit(parts[i], false, depth + 1);
  }
  if (comma && parts.size() == 1) Put(",");
  if (comma) Put(")");
  Put("]");
}

}  // namespace tritonrl
