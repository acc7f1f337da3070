#include "verify/linter/forbidden.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"
#include "verify/linter/tables.h"

namespace tritonrl::lint {
namespace {

class Scan {
 public:
  explicit Scan(LintResult* result) : result_(result) {}

  void Imports(const Node* node) {
    if (node->kind == Kind::kClassDef && node->Get(Field::kName) != nullptr) {
      const absl::string_view name = node->Get(Field::kName)->text;
      const size_t start = name.find_first_not_of('_');
      if (start != absl::string_view::npos) classes_.emplace(name.substr(start));
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
      CheckModule(name, node->line);
      for (const Node* child : node->children) {
        if (child->kind == Kind::kWildcardImport) Wildcard(name, node->line);
        if (child != module) ImportName(child, name + ".");
      }
    }
    for (const Node* child : node->children) Imports(child);
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
    for (const Node* child : node->children) Names(child);
  }

 private:
  void Add(int line, const std::string& name, const std::string& why) {
    if (!seen_.emplace(line, name).second) return;
    result_->findings.push_back(
        {LintRule::kForbidden, line, name, absl::StrCat("'", name, "' ", why)});
  }

  void CheckModule(const std::string& name, int line) {
    if (IsForbiddenModule(name)) Add(line, name, "is a module that a kernel has no use for");
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
    CheckModule(full, node->line);
    if (IsForbiddenFunction(full)) Add(node->line, full, WhyForbidden(full));
    const std::string bound = alias != nullptr ? std::string(alias->text)
                              : prefix.empty() ? full.substr(0, full.find('.'))
                                               : full.substr(full.rfind('.') + 1);
    aliases_[bound] = alias == nullptr && prefix.empty() ? bound : full;
  }

  // Python folds look-alikes of ASCII letters into them, so that other spellings of eval mean eval.
  // Greek stays Greek.
  static bool HasLookAlike(absl::string_view name) {
    for (size_t i = 0; i < name.size(); ++i) {
      const unsigned char c = name[i];
      if (c < 0x80) continue;
      if (c != 0xCD && c != 0xCE && c != 0xCF) return true;
      const unsigned char d = ++i < name.size() ? name[i] : 0;
      // Greek symbols that fold into Greek letters.
      const bool folds = (c == 0xCF && ((d >= 0x90 && d <= 0x96) || d >= 0xB0)) ||
                         (c == 0xCD && d >= 0xB4) || (c == 0xCE && d < 0x88);
      if (folds) return true;
    }
    return false;
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
    for (const std::string& type : classes_) {
      if (absl::StartsWith(name.substr(1), absl::StrCat(type, "__"))) return true;
    }
    return false;
  }

  void Identifier(const Node* node) {
    if (HasLookAlike(node->text)) {
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
    const Node* object = node->Get(Field::kObject);
    if (object == nullptr || object->kind != Kind::kIdentifier) return;
    auto it = aliases_.find(std::string(object->text));
    if (it == aliases_.end()) return;
    const std::string full = absl::StrCat(it->second, ".", attribute->text);
    if (IsForbiddenFunction(full)) Add(node->line, full, WhyForbidden(full));
  }

  LintResult* result_;
  std::set<std::string> classes_;               // of the program, without leading underscores
  std::map<std::string, std::string> aliases_;  // of imports, anywhere in the program
  std::set<std::pair<int, std::string>> seen_;
};

}  // namespace

void FindForbidden(const Node* root, LintResult* result) {
  Scan scan(result);
  scan.Imports(root);
  scan.Names(root);
}

}  // namespace tritonrl::lint
