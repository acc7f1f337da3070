// Imports and definitions of functions and classes, and match statements.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {

void Interpreter::ExecImport(const Node* node) {
  for (const Node* child : node->children) {
    if (child->kind == Kind::kDottedName) {
      const std::string name = DottedText(child);
      const std::string top = name.substr(0, name.find('.'));
      Bind(ast_->Intern(top), arena_.Symbol(top));
    } else if (child->kind == Kind::kAliasedImport) {
      const Node* alias = child->Get(Field::kAlias);
      const Node* name = child->Get(Field::kName);
      if (alias != nullptr && name != nullptr) Bind(alias->name, arena_.Symbol(DottedText(name)));
    }
  }
}

void Interpreter::ExecImportFrom(const Node* node) {
  const Node* module_node = node->Get(Field::kModuleName);
  if (module_node == nullptr) return;
  const std::string module = module_node->kind == Kind::kDottedName
                                 ? DottedText(module_node)
                                 : std::string(module_node->text);
  // What a module holds may be another module.
  auto symbol = [&](const std::string& name) {
    const std::string inner = ReexportedModule(module, name);
    if (inner.empty()) return arena_.Symbol(absl::StrCat(module, ".", name));
    if (IsForbiddenModule(inner))
      Forbid(node->line, absl::StrCat(module, ".", name),
             "is a module that a kernel has no use for");
    return arena_.Symbol(inner);
  };
  for (const Node* child : node->children) {
    if (child == module_node) continue;
    if (child->kind == Kind::kWildcardImport) {
      wildcards_.push_back(module);
    } else if (child->kind == Kind::kDottedName) {
      Bind(child->children.empty() ? ast_->Intern(child->text) : child->children[0]->name,
           symbol(DottedText(child)));
    } else if (child->kind == Kind::kAliasedImport) {
      const Node* alias = child->Get(Field::kAlias);
      const Node* name = child->Get(Field::kName);
      if (alias != nullptr && name != nullptr) {
        Bind(alias->name, symbol(DottedText(name)));
      }
    }
  }
}

void Interpreter::ExecDecorated(const Node* node) {
  std::vector<const Node*> decorators;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kDecorator && !child->children.empty())
      decorators.push_back(child->children[0]);
    if (child->kind == Kind::kFunctionDef) ExecFunctionDef(child, decorators);
    if (child->kind == Kind::kClassDef) ExecClassDef(child, decorators);
  }
}

void Interpreter::ExecFunctionDef(const Node* node, const std::vector<const Node*>& decorators) {
  const Node* name = node->Get(Field::kName);
  if (name == nullptr) return;
  auto* function = arena_.New<FunctionObject>();
  function->node = node;
  function->name = std::string(name->text);
  function->closure = frame().scope;
  if (const Node* parameters = node->Get(Field::kParameters)) {
    for (const Node* p : parameters->children) {
      const Node* value = p->Get(Field::kValue);
      if (value != nullptr) function->defaults.emplace_back(p, Eval(value));
      // Python evaluates annotations too, when the definition runs.
      if (phase_ == Phase::kForward && p->Get(Field::kType) != nullptr) Eval(p->Get(Field::kType));
    }
  }
  if (phase_ == Phase::kForward) Eval(node->Get(Field::kReturnType));
  Value value = function;
  for (auto it = decorators.rbegin(); it != decorators.rend(); ++it) {
    Args args{.positional = {value}, .line = (*it)->line};
    value = Call(Eval(*it), args);
  }
  Bind(name->name, value);
}

void Interpreter::ExecClassDef(const Node* node, const std::vector<const Node*>& decorators) {
  const Node* name = node->Get(Field::kName);
  if (name == nullptr) return;
  auto* type = arena_.New<ClassObject>();
  type->name = std::string(name->text);
  type->node = node;
  classes_.push_back(type);
  if (const Node* bases = node->Get(Field::kSuperclasses)) {
    for (const Node* base : bases->children) {
      if (base->kind == Kind::kKeywordArgument) {
        const Node* key = base->Get(Field::kName);
        const auto* given = AsSymbol(Eval(base->Get(Field::kValue)));
        const bool abstract = given != nullptr && given->name == "abc.ABCMeta";
        if (abstract || (key != nullptr && key->text == "total")) continue;  // of a TypedDict
        Forbid(base->line, std::string(base->text),
               "a class keyword such as a metaclass hides what the class does");
      } else {
        type->bases.push_back(Eval(base));
      }
    }
  }
  SearchOrder(type);
  if (type->cut)
    Find(LintRule::kUnresolved, node->line, type->name, "a class has more bases than are followed");
  type->body = arena_.NewScope(frame().scope);
  type->body->is_class = true;
  frames_.push_back({.scope = type->body});
  ExecBlock(node->Get(Field::kBody));
  frames_.pop_back();
  for (auto& [key, value] : type->body->variables) {
    if (auto* function = AsFunction(value); function != nullptr && function->owner == nullptr) {
      function->owner = type;
    }
  }
  Value value = type;
  for (auto it = decorators.rbegin(); it != decorators.rend(); ++it) {
    Args args{.positional = {value}, .line = (*it)->line};
    value = Call(Eval(*it), args);
  }
  Bind(name->name, value);
}

void Interpreter::ExecDeclaration(const Node* node) {
  for (const Node* child : node->children) {
    auto& names = node->kind == Kind::kGlobal ? frame().scope->globals : frame().scope->nonlocals;
    budget_.SpendSearch(1, names.size());
    if (child->kind == Kind::kIdentifier &&
        std::find(names.begin(), names.end(), child->name) == names.end())
      names.push_back(child->name);
  }
}

Interpreter::Flow Interpreter::ExecMatch(const Node* node) {
  Value subject = arena_.Unknown();
  for (const Node* child : node->children) {
    if (child->field == Field::kSubject) subject = Eval(child);
  }
  Hide(subject, node->line);  // a class pattern reads its properties
  const Node* body = node->Get(Field::kBody);
  Flow flow = Flow::kNext;
  std::vector<const Node*> cases;
  for (const Node* holder : {node, body}) {
    if (holder == nullptr) continue;
    for (const Node* child : holder->children) {
      if (child->kind == Kind::kCase) cases.push_back(child);
    }
  }
  for (const Node* option : cases) {
    auto taken = [&] {
      for (const Node* part : option->children) {
        if (part->kind == Kind::kBlock) return ExecBlock(part);
        if (part->kind == Kind::kIfClause && !part->children.empty()) {
          Eval(part->children[0]);
          continue;
        }
        Unpack({part}, arena_.Join(subject, arena_.Unknown(Reachable(subject))));
      }
      return Flow::kNext;
    };
    flow = Branch(taken, [] { return Flow::kNext; });
  }
  return flow;
}

}  // namespace tritonrl::lint
