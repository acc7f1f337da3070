// What one walk over a program collects for the rules: imports, names, what assignments change.
#ifndef TRITONRL_VERIFY_LINTER_PROGRAM_H_
#define TRITONRL_VERIFY_LINTER_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "verify/linter/ast.h"
#include "verify/linter/names.h"

namespace tritonrl::lint {

struct Import {
  std::string name;   // "torch.nn.functional"
  std::string bound;  // the name in the program: "F"; empty after "from name import *"
  int line = 0;
};

// Code under `if __name__ == "__main__"` does not run and is left out, unless the program changes
// `__name__`. Views point into the syntax tree, which must live longer.
class Program {
 public:
  explicit Program(const Node* root);

  const Node* root() const { return root_; }
  const std::vector<Import>& imports() const { return imports_; }
  const std::vector<const Node*>& identifiers() const { return identifiers_; }  // not in imports
  const std::vector<const Node*>& attributes() const { return attributes_; }    // expressions
  const std::vector<const Node*>& functions() const { return functions_; }      // definitions

  // True if an identifier, an attribute or an import has this name.
  bool Mentions(absl::string_view name) const { return mentioned_.contains(name); }
  // True if one that it mentions has the trait.
  bool MentionsAny(NameTrait trait) const { return (traits_ & trait) != 0; }
  bool HasText(absl::string_view text) const { return texts_.contains(text); }
  // True if something other than an import gives the name a value, in any scope.
  bool Binds(absl::string_view name) const { return bound_.contains(name); }
  // How often an assignment, `del` or the like changes an attribute of this name, or what is in it.
  int ChangesOf(absl::string_view attribute) const;
  // True if an assignment changes something in a module whose full name begins with `module`.
  bool Patches(absl::string_view module) const;

  // "os.path.join" for j.join after "from os import path as j". Empty where the expression begins
  // with no import, or with a name that has another meaning in the module, a class or forward.
  std::string FullName(const Node* expression) const;
  // True for `if __name__ == "__main__"`'s body.
  bool IsMainGuarded(const Node* node) const;

 private:
  void Walk(const Node* node, bool local);
  void Visit(const Node* node);
  void AddImport(const Node* node, const std::string& prefix);
  void AddFrom(const Node* node);
  void Mention(absl::string_view name);
  void Bind(const Node* target);
  void Change(const Node* target);

  const Node* root_;
  bool keeps_name_ = true;
  bool local_ = false;  // the walk is in a function other than forward
  std::vector<Import> imports_;
  std::vector<const Node*> identifiers_, attributes_, functions_;
  absl::flat_hash_set<absl::string_view> mentioned_;
  uint32_t traits_ = 0;  // of all that is mentioned
  absl::flat_hash_set<std::string> texts_;
  absl::flat_hash_set<absl::string_view> bound_;   // in any scope
  absl::flat_hash_set<absl::string_view> shadow_;  // where it hides an import from forward
  absl::flat_hash_map<absl::string_view, int> changes_;
  std::vector<const Node*> changed_;  // what attributes and items that change belong to
  absl::flat_hash_map<std::string, std::string> aliases_;  // empty: not one meaning
};

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_PROGRAM_H_
