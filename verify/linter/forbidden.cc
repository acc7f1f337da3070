#include "verify/linter/forbidden.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"
#include "verify/linter/tables.h"

namespace tritonrl::lint {
namespace {

class Scan {
 public:
  explicit Scan(LintResult* result) : result_(result) {}

  void Imports(const Node* node, bool in_class) {
    in_class = in_class ? node->kind != Kind::kFunctionDef : node->kind == Kind::kClassDef;
    in_class_ = in_class;
    if (node->kind == Kind::kClassDef && node->Get(Field::kName) != nullptr) {
      const absl::string_view name = node->Get(Field::kName)->text;
      const size_t start = name.find_first_not_of('_');
      if (start != absl::string_view::npos) {
        classes_.insert(name.substr(start));
        class_lengths_.insert(name.size() - start);
      }
    }
    if (node->kind == Kind::kImport) {
      for (const Node* child : node->children) ImportName(child, "");
    } else if (node->kind == Kind::kImportFrom) {
      const Node* module = node->Get(Field::kModuleName);
      if (module == nullptr) return;
      if (module->kind == Kind::kRelativeImport) {
        Add(node->line, std::string(module->text), "imports a file beside the candidate");
        return;
      }
      const std::string name = DottedText(module);
      for (const Node* child : node->children) {
        if (child->kind == Kind::kWildcardImport) Wildcard(name, node->line);
        if (child != module) ImportName(child, name + ".");
      }
    }
    for (const Node* child : node->children) {
      if (!IsUnderMainGuard(child)) Imports(child, in_class);
    }
  }

  // Modules that a kernel has no use for, where their name is used: programs are full of imports
  // that nothing follows.
  void UsesOfImports(const Node* root) {
    if (unused_.empty()) return;
    absl::flat_hash_set<absl::string_view> names;
    CollectNames(root, &names);
    for (const Import& import : unused_) {
      if (names.contains(import.bound)) AddModule(import.module, import.line);
    }
  }

  // Looks whether the program leaves __name__ alone, so that what stands under a test for being the
  // main program does not run.
  void MainGuard(const Node* node) {
    if (node->kind == Kind::kIdentifier && node->text == "__name__") {
      const Kind parent = node->parent == nullptr ? Kind::kOther : node->parent->kind;
      if (parent != Kind::kComparison && parent != Kind::kArgumentList) keeps_name_ = false;
    }
    for (const Node* child : node->children) MainGuard(child);
  }

  void Names(const Node* node) {
    switch (node->kind) {
      case Kind::kIdentifier:
        Identifier(node);
        break;
      case Kind::kAttribute:
        Attribute(node);
        break;
      case Kind::kString:
        if (std::optional<std::string> text = PlainString(node);
            text.has_value() && IsMangled(*text))
          Add(node->line, *text, "is what Python makes of another name in a class");
        break;
      case Kind::kFunctionDef: {
        const Node* name = node->Get(Field::kName);
        if (name != nullptr && IsBufferProtocol(name->text))
          Add(name->line, std::string(name->text), "gives memory away as an array");
        if (name != nullptr && Is(kForbiddenMethod, name->text)) {
          Add(name->line, std::string(name->text), "is a special method that hides code");
        }
        break;
      }
      default:
        break;
    }
    for (const Node* child : node->children) {
      if (!IsUnderMainGuard(child)) Names(child);
    }
  }

 private:
  void Add(int line, const std::string& name, const std::string& why) {
    if (!seen_.emplace(line, name).second) return;
    result_->findings.push_back(
        {LintRule::kForbidden, line, name, absl::StrCat("'", name, "' ", why)});
  }

  struct Import {
    std::string module;
    std::string bound;  // the name in the program
    int line;
  };

  void AddModule(const std::string& name, int line) {
    Add(line, name, "is a module that a kernel has no use for");
  }

  static bool TestsForMain(const Node* condition) {
    if (condition == nullptr || condition->kind != Kind::kComparison ||
        condition->children.size() != 3) {
      return false;
    }
    const absl::string_view value = condition->children[2]->text;
    return condition->children[0]->text == "__name__" && condition->children[1]->text == "==" &&
           (value == "\"__main__\"" || value == "'__main__'");
  }

  bool IsUnderMainGuard(const Node* node) const {
    return keeps_name_ && node->field == Field::kConsequence && node->parent != nullptr &&
           node->parent->kind == Kind::kIf && TestsForMain(node->parent->Get(Field::kCondition));
  }

  void CollectNames(const Node* node, absl::flat_hash_set<absl::string_view>* names) const {
    if (node->kind == Kind::kImport || node->kind == Kind::kImportFrom) return;
    if (node->kind == Kind::kIdentifier && node->field != Field::kAttribute)
      names->insert(node->text);
    for (const Node* child : node->children) {
      if (!IsUnderMainGuard(child)) CollectNames(child, names);
    }
  }

  void Wildcard(const std::string& module, int line) {
    if (module != "math" && module != "triton.language" && module != "triton" &&
        module != "typing") {
      Add(line, absl::StrCat("from ", module, " import *"), "hides where names come from");
    }
  }

  void ImportName(const Node* node, const std::string& prefix) {
    const Node* name = node;
    const Node* alias = nullptr;
    if (node->kind == Kind::kAliasedImport) {
      name = node->Get(Field::kName);
      alias = node->Get(Field::kAlias);
    } else if (node->kind != Kind::kDottedName) {
      return;
    }
    if (name == nullptr) return;
    const std::string full = prefix + DottedText(name);
    if (IsForbiddenFunction(full)) Add(node->line, full, WhyForbidden(full));
    const std::string bound = alias != nullptr ? std::string(alias->text)
                              : prefix.empty() ? full.substr(0, full.find('.'))
                                               : full.substr(full.rfind('.') + 1);
    aliases_[bound] = alias == nullptr && prefix.empty() ? bound : full;
    if (!IsForbiddenModule(full)) return;
    // A name in a class can be had as its attribute.
    const std::string module = prefix.empty() ? full : prefix.substr(0, prefix.size() - 1);
    const std::string& shown = IsForbiddenModule(module) ? module : full;
    if (in_class_) {
      AddModule(shown, node->line);
    } else {
      unused_.push_back({shown, bound, node->line});
    }
  }

  static bool IsBufferProtocol(absl::string_view name) {
    return name == "__array_interface__" || name == "__cuda_array_interface__" ||
           name == "__array_struct__" || name == "__buffer__" || name == "to_dlpack" ||
           name == "_to_dlpack" || name == "__dlpack__" || name == "__array__";
  }

  // "_Class__name" is what Python makes of "__name" inside of Class.
  bool IsMangled(absl::string_view name) const {
    if (name.size() < 4 || name[0] != '_' || name[1] == '_' || absl::EndsWith(name, "__"))
      return false;
    const absl::string_view rest = name.substr(1);
    for (const size_t length : class_lengths_) {
      if (length + 2 > rest.size()) break;
      if (rest[length] == '_' && rest[length + 1] == '_' &&
          classes_.contains(rest.substr(0, length)))
        return true;
    }
    return false;
  }

  // Directly in the body of a class, decorated or not.
  static bool IsMethod(const Node* function) {
    const Node* around = function->parent;
    if (around != nullptr && around->kind == Kind::kDecorated) around = around->parent;
    return around != nullptr && around->kind == Kind::kBlock && around->parent != nullptr &&
           around->parent->kind == Kind::kClassDef;
  }

  void Identifier(const Node* node) {
    if (FoldsIntoAnother(node->text)) {
      Add(node->line, std::string(node->text),
          "is a name in letters that Python folds into others");
    }
    if (IsBufferProtocol(node->text))
      Add(node->line, std::string(node->text), "gives memory away as an array");
    if (IsMangled(node->text))
      Add(node->line, std::string(node->text), "is what Python makes of another name in a class");
    if (!Is(kForbiddenBuiltin, node->text)) return;
    // Names that people also give to their own variables are checked where they are looked up.
    for (absl::string_view common :
         {"input", "help", "exit", "quit", "memoryview", "compile", "open", "vars"}) {
      if (node->text == common) return;
    }
    // A class may have a method of that name, as torch.nn.Module has eval.
    if (node->field == Field::kName && node->parent != nullptr &&
        node->parent->kind == Kind::kFunctionDef && IsMethod(node->parent)) {
      return;
    }
    const bool names_something = node->field == Field::kAttribute ||
                                 (node->field == Field::kName && node->parent != nullptr &&
                                  node->parent->kind == Kind::kKeywordArgument);
    if (!names_something) Add(node->line, std::string(node->text), "is refused in a candidate");
  }

  void Attribute(const Node* node) {
    const Node* attribute = node->Get(Field::kAttribute);
    if (attribute == nullptr) return;
    if (Is(kForbiddenAttribute, attribute->text)) {
      Add(attribute->line, std::string(attribute->text), "reaches into Python's own machinery");
    }
    const std::string full = FullName(node);
    if (!full.empty() && IsForbiddenFunction(full)) Add(node->line, full, WhyForbidden(full));
  }

  // "os.path.join" for j.join after "from os import path as j"; "" where it begins with no import.
  std::string FullName(const Node* node) const {
    if (node == nullptr) return "";
    if (node->kind == Kind::kIdentifier) {
      auto it = aliases_.find(node->text);
      return it == aliases_.end() ? "" : it->second;
    }
    const Node* attribute = node->Get(Field::kAttribute);
    if (node->kind != Kind::kAttribute || attribute == nullptr) return "";
    const std::string object = FullName(node->Get(Field::kObject));
    return object.empty() ? "" : absl::StrCat(object, ".", attribute->text);
  }

  LintResult* result_;
  // Of the program's classes, without leading underscores.
  absl::flat_hash_set<absl::string_view> classes_;
  std::set<size_t> class_lengths_;
  absl::flat_hash_map<std::string, std::string> aliases_;  // of imports, anywhere in the program
  std::vector<Import> unused_;                             // of forbidden modules, until seen used
  bool in_class_ = false;
  bool keeps_name_ = true;
  std::set<std::pair<int, std::string>> seen_;
};

}  // namespace

void FindForbidden(const Node* root, LintResult* result) {
  Scan scan(result);
  scan.MainGuard(root);
  scan.Imports(root, false);
  scan.UsesOfImports(root);
  scan.Names(root);
}

}  // namespace tritonrl::lint
