#include "tools/kernelbook/program_form.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/hash.h"
#include "base/python_syntax.h"

namespace tritonrl {
namespace {

constexpr size_t kShingle = 5;  // tokens
// Deeper parts of a syntax tree are ignored. Python itself refuses such programs.
constexpr int kMaxDepth = 400;

bool Is(const PythonNode& node, absl::string_view type) { return node.type() == type; }

// Names that a program gives to classes, functions, parameters, variables and attributes of self,
// and the full names that its imports bind.
struct Names {
  std::set<std::string> own, attributes;
  std::map<std::string, std::string> imported;  // name: full name
};

void CollectPattern(const PythonNode& node, Names* names, int depth = 0) {
  if (depth > kMaxDepth) return;
  if (Is(node, "identifier")) {
    names->own.insert(std::string(node.text()));
  } else if (Is(node, "attribute")) {
    if (node.field("object").text() == "self")
      names->attributes.insert(std::string(node.field("attribute").text()));
  } else if (Is(node, "typed_parameter")) {
    if (node.child_count() > 0) CollectPattern(node.child(0), names, depth + 1);
  } else if (Is(node, "default_parameter") || Is(node, "typed_default_parameter")) {
    CollectPattern(node.field("name"), names, depth + 1);
  } else if (!Is(node, "subscript")) {
    for (const PythonNode& part : node.named_children()) CollectPattern(part, names, depth + 1);
  }
}

// `import a.b as c`, `from a import b as c`, and the forms without `as`.
void CollectImport(const PythonNode& node, Names* names) {
  const std::string module(node.field("module_name").text());
  const std::string prefix = module.empty() ? "" : absl::StrCat(module, ".");
  for (const PythonNode& part : node.named_children()) {
    if (part == node.field("module_name")) continue;
    if (Is(part, "aliased_import")) {
      names->imported[std::string(part.field("alias").text())] =
          absl::StrCat(prefix, part.field("name").text());
    } else if (Is(part, "dotted_name")) {
      const std::string name(part.text());
      if (!module.empty()) names->imported[name] = prefix + name;
    }
  }
}

void Collect(const PythonNode& node, Names* names, int depth = 0) {
  if (depth > kMaxDepth) return;
  const absl::string_view type = node.type();
  if (type == "import_statement" || type == "import_from_statement") {
    return CollectImport(node, names);
  }
  if (type == "class_definition" || type == "function_definition") {
    const std::string name(node.field("name").text());
    names->own.insert(name);
    names->attributes.insert(name);
  }
  if (type == "parameters" || type == "lambda_parameters" || type == "as_pattern_target") {
    CollectPattern(node, names);
  } else if (type == "assignment" || type == "augmented_assignment" || type == "for_statement" ||
             type == "for_in_clause") {
    CollectPattern(node.field("left"), names);
  } else if (type == "named_expression") {
    CollectPattern(node.field("name"), names);
  }
  for (const PythonNode& child : node.named_children()) Collect(child, names, depth + 1);
}

// The tokens of parts of a program.
class Tokens {
 public:
  explicit Tokens(const Names& names) : names_(names) {}

  void Add(const PythonNode& node) { Emit(node, /*own_callee=*/false, /*depth=*/0); }
  void AddEntryPoint(const std::string& name) { Own("n:" + name); }

  uint64_t Hash() const { return Hash64(text_); }
  uint64_t LibraryHash() const {
    std::string all;
    for (const std::string& name : library_) absl::StrAppend(&all, name, "\n");
    return Hash64(all);
  }
  std::vector<uint64_t> Shingles() const {
    std::vector<uint64_t> shingles;
    for (size_t begin = 0; begin == 0 || begin + kShingle <= plain_.size(); ++begin) {
      std::string text;
      for (size_t i = begin; i < std::min(begin + kShingle, plain_.size()); ++i) {
        absl::StrAppend(&text, plain_[i], "\n");
      }
      shingles.push_back(Hash64(text));
    }
    std::sort(shingles.begin(), shingles.end());
    shingles.erase(std::unique(shingles.begin(), shingles.end()), shingles.end());
    return shingles;
  }

 private:
  void Put(absl::string_view numbered, absl::string_view plain) {
    absl::StrAppend(&text_, numbered, "\n");
    plain_.emplace_back(plain);
  }
  void Own(const std::string& key) {
    const size_t number = numbers_.emplace(key, numbers_.size()).first->second;
    Put(absl::StrCat("$", number), "$");
  }
  // A name of a library, part by part: relu is the same whether it was imported as torch.relu or
  // as torch.nn.functional.relu.
  void Library(const std::string& full_name) {
    constexpr absl::string_view kModules[] = {"torch", "nn", "functional", "Module", "Tensor"};
    bool first = true;
    for (absl::string_view part : absl::StrSplit(full_name, '.')) {
      if (!first) Put(".", ".");
      first = false;
      Put(part, part);
      if (std::find(std::begin(kModules), std::end(kModules), part) == std::end(kModules))
        library_.emplace(part);
    }
  }

  void Identifier(absl::string_view text) {
    const std::string name(text);
    if (names_.own.count(name) > 0) return Own("n:" + name);
    const auto imported = names_.imported.find(name);
    Library(imported == names_.imported.end() ? name : imported->second);
  }

  // A docstring, or the call of the base class's constructor.
  static bool IsLeftOut(const PythonNode& statement) {
    if (!Is(statement, "expression_statement") || statement.child_count() != 1) return false;
    const PythonNode only = statement.child(0);
    if (Is(only, "string")) return true;
    return Is(only, "call") && absl::StartsWith(only.text(), "super(") &&
           absl::StrContains(only.text(), ".__init__(");
  }

  // `own_callee`: the node is the argument list of a call of a function of this program, whose
  // parameters' names are its own.
  void Emit(const PythonNode& node, bool own_callee, int depth) {
    if (depth > kMaxDepth) return;
    const absl::string_view type = node.type();
    if (type == "comment" || type == "import_statement" || type == "import_from_statement") return;
    if (IsLeftOut(node)) return;
    if (type == "identifier") return Identifier(node.text());
    if (type == "string") return String(node.text());
    if (type == "attribute") return Attribute(node, depth);
    if (type == "block") Put("{", "{");
    const bool call =
        type == "call" && names_.own.count(std::string(node.field("function").text()));
    if (node.child_count() == 0) {
      const std::string text(node.text());
      if (!text.empty()) node.named() ? Put(text, text) : Operator(text);
    }
    for (const PythonNode& child : node.children()) {
      if (Is(child, "keyword_argument"))
        Keyword(child, own_callee, depth);
      else
        Emit(child, call && Is(child, "argument_list"), depth + 1);
    }
    if (type == "block") Put("}", "}");
  }

  void Operator(const std::string& text) {
    Put(text, text);
    if (absl::string_view("+-*/%@<>=!&|^~").find(text[0]) != absl::string_view::npos && text != "=")
      library_.insert(text);
  }

  // A text that is a name of the program, such as the key of a constructor's argument.
  void String(absl::string_view text) {
    const std::string inner(text.size() >= 2 ? text.substr(1, text.size() - 2) : text);
    if (names_.own.count(inner) > 0) return Own("n:" + inner);
    Put(text, text);
  }

  void Attribute(const PythonNode& node, int depth) {
    const PythonNode object = node.field("object");
    const std::string name(node.field("attribute").text());
    Emit(object, false, depth + 1);
    Put(".", ".");
    if (object.text() == "self" && names_.attributes.count(name) > 0) return Own("a:" + name);
    Library(name);
  }

  void Keyword(const PythonNode& node, bool own_callee, int depth) {
    const std::string name(node.field("name").text());
    if (own_callee && names_.own.count(name) > 0)
      Own("n:" + name);
    else
      Put(name, name);
    Put("=", "=");
    Emit(node.field("value"), false, depth + 1);
  }

  const Names& names_;
  std::string text_;
  std::vector<std::string> plain_;
  std::map<std::string, size_t> numbers_;
  std::set<std::string> library_;
};

PythonNode Definition(const PythonNode& statement) {
  return Is(statement, "decorated_definition") ? statement.field("definition") : statement;
}

bool IsDefinition(const PythonNode& node) {
  return Is(node, "class_definition") || Is(node, "function_definition");
}

void CollectIdentifiers(const PythonNode& node, int depth, std::vector<std::string>* names) {
  if (depth > kMaxDepth) return;
  if (Is(node, "identifier")) names->emplace_back(node.text());
  for (const PythonNode& child : node.named_children()) {
    CollectIdentifiers(child, depth + 1, names);
  }
}

// The top-level definitions that the class `entry_point` needs, by place in the program.
std::vector<bool> NeededBy(const std::string& entry_point,
                           const std::vector<PythonNode>& statements) {
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < statements.size(); ++i) {
    const PythonNode definition = Definition(statements[i]);
    if (IsDefinition(definition)) place[std::string(definition.field("name").text())] = i;
  }
  std::vector<bool> needed(statements.size(), false);
  std::vector<std::string> open = {entry_point};
  while (!open.empty()) {
    const auto found = place.find(open.back());
    open.pop_back();
    if (found == place.end() || needed[found->second]) continue;
    needed[found->second] = true;
    CollectIdentifiers(statements[found->second], 0, &open);
  }
  return needed;
}

}  // namespace

ProgramForm FormOf(const std::string& source, const std::string& entry_point) {
  ProgramForm form;
  const PythonTree tree(source);
  if (tree.root().null()) return form;
  Names names;
  Collect(tree.root(), &names);
  const std::vector<PythonNode> statements = tree.root().named_children();
  Tokens program(names), model(names);
  const std::vector<bool> needed = NeededBy(entry_point, statements);
  for (size_t i = 0; i < statements.size(); ++i) {
    program.Add(statements[i]);
    if (needed[i]) model.Add(statements[i]);
  }
  program.AddEntryPoint(entry_point);
  form.program = program.Hash();
  form.model = model.Hash();
  form.library = model.LibraryHash();
  form.shingles = model.Shingles();
  return form;
}

}  // namespace tritonrl
