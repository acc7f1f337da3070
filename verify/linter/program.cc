#include "verify/linter/program.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tritonrl::lint {
namespace {

constexpr size_t kUsualNames = 100;  // different ones in a program

bool TestsForMain(const Node* condition) {
  if (condition == nullptr || condition->kind != Kind::kComparison ||
      condition->children().size() != 3)
    return false;
  const absl::string_view value = condition->children()[2]->text;
  return condition->children()[0]->text == "__name__" && condition->children()[1]->text == "==" &&
         (value == "\"__main__\"" || value == "'__main__'");
}

// False if the program may give __name__ another value.
bool KeepsName(const Node* root) {
  return !AnyBelow(root, [](const Node* node) {
    return node->kind == Kind::kIdentifier && node->text == "__name__" &&
           node->parent()->kind != Kind::kComparison && node->parent()->kind != Kind::kArgumentList;
  });
}

// Directly in the body of a class, decorated or not: only an attribute has its name.
bool IsMethod(const Node* function) {
  const Node* around = function->parent();
  if (around->kind == Kind::kDecorated) around = around->parent();
  return around->kind == Kind::kBlock && around->parent()->kind == Kind::kClassDef;
}

}  // namespace

Program::Program(const Node* root) : root_(root), keeps_name_(KeepsName(root)) {
  mentioned_.reserve(kUsualNames);
  Walk(root, false);
  for (const Import& import : imports_) {
    Mention(import.bound);
    Mention(absl::string_view(import.name).substr(import.name.rfind('.') + 1));
  }
}

void Program::Mention(absl::string_view name) {
  if (mentioned_.insert(name).second) traits_ |= TraitsOf(name);
}

int Program::ChangesOf(absl::string_view attribute) const {
  auto it = changes_.find(attribute);
  return it == changes_.end() ? 0 : it->second;
}

bool Program::Patches(absl::string_view module) const {
  for (const Node* node : changed_) {
    const std::string name = FullName(node);
    if (name == module || absl::StartsWith(name, absl::StrCat(module, "."))) return true;
  }
  return false;
}

std::string Program::FullName(const Node* expression) const {
  if (expression == nullptr) return "";
  if (expression->kind == Kind::kIdentifier) {
    auto it = aliases_.find(expression->text);
    return it == aliases_.end() || shadow_.contains(expression->text) ? "" : it->second;
  }
  if (expression->kind != Kind::kAttribute) return "";
  const Node* attribute = expression->Get(Field::kAttribute);
  const std::string object = FullName(expression->Get(Field::kObject));
  if (object.empty() || attribute == nullptr) return "";
  return absl::StrCat(object, ".", attribute->text);
}

bool Program::IsMainGuarded(const Node* node) const {
  return keeps_name_ && node->field == Field::kConsequence && node->parent()->kind == Kind::kIf &&
         TestsForMain(node->parent()->Get(Field::kCondition));
}

void Program::Walk(const Node* node, bool local) {
  local_ = local;
  if (node->kind == Kind::kImport) {
    for (const Node* child : node->children()) AddImport(child, "");
  } else if (node->kind == Kind::kImportFrom) {
    AddFrom(node);
  } else {
    Visit(node);
    if (node->kind == Kind::kLambda || node->kind == Kind::kFunctionDef) {
      const Node* name = node->Get(Field::kName);
      local = local || name == nullptr || name->text != "forward";
    }
    for (const Node* child : node->children()) {
      if (!IsMainGuarded(child)) Walk(child, local);
    }
  }
}

void Program::AddFrom(const Node* node) {
  const Node* module = node->Get(Field::kModuleName);
  if (module == nullptr) return;
  const std::string name = DottedText(module);
  for (const Node* child : node->children()) {
    if (child->kind == Kind::kWildcardImport) {
      imports_.push_back({.name = name, .line = node->line});
    } else if (child != module) {
      AddImport(child, name + ".");
    }
  }
}

void Program::AddImport(const Node* node, const std::string& prefix) {
  const bool aliased = node->kind == Kind::kAliasedImport;
  if (!aliased && node->kind != Kind::kDottedName) return;
  const Node* name = aliased ? node->Get(Field::kName) : node;
  const Node* alias = aliased ? node->Get(Field::kAlias) : nullptr;
  if (name == nullptr) return;
  const std::string full = prefix + DottedText(name);
  // "import a.b" gives the program a.
  const std::string meant = aliased || !prefix.empty() ? full : full.substr(0, full.find('.'));
  const std::string bound =
      alias != nullptr ? std::string(alias->text) : meant.substr(meant.rfind('.') + 1);
  imports_.push_back({.name = full, .bound = bound, .line = node->line});
  auto [it, fresh] = aliases_.emplace(bound, meant);
  if (!fresh && it->second != meant) it->second.clear();
}

// Takes down what a name, attribute or item that gets a value is.
void Program::Bind(const Node* target) {
  if (target == nullptr) return;
  switch (target->kind) {
    case Kind::kIdentifier:
      bound_.insert(target->text);
      if (!local_) shadow_.insert(target->text);
      return;
    case Kind::kAttribute:
    case Kind::kSubscript:
      Change(target);
      return;
    case Kind::kCall:
      return;
    default:
      for (const Node* child : target->children()) {
        if (child->field != Field::kValue && child->field != Field::kObject) Bind(child);
      }
  }
}

void Program::Change(const Node* target) {
  const Node* object =
      target->Get(target->kind == Kind::kAttribute ? Field::kObject : Field::kValue);
  if (object == nullptr) return;
  changed_.push_back(object);
  if (const Node* attribute = target->Get(Field::kAttribute); attribute != nullptr)
    ++changes_[attribute->text];
  while (object != nullptr &&
         (object->kind == Kind::kAttribute || object->kind == Kind::kSubscript)) {
    if (const Node* attribute = object->Get(Field::kAttribute); attribute != nullptr)
      ++changes_[attribute->text];
    object = object->Get(object->kind == Kind::kAttribute ? Field::kObject : Field::kValue);
  }
}

void Program::Visit(const Node* node) {
  switch (node->kind) {
    case Kind::kIdentifier:
      identifiers_.push_back(node);
      Mention(node->text);
      break;
    case Kind::kAttribute:
      attributes_.push_back(node);
      break;
    case Kind::kString:
    case Kind::kConcatenatedString:
      if (std::optional<std::string> text = PlainString(node)) texts_.insert(*std::move(text));
      break;
    case Kind::kFunctionDef:
      functions_.push_back(node);
      if (!IsMethod(node)) Bind(node->Get(Field::kName));
      break;
    case Kind::kClassDef:
    case Kind::kNamedExpression:
      Bind(node->Get(Field::kName));
      break;
    case Kind::kAssignment:
    case Kind::kAugmentedAssignment:
    case Kind::kFor:
    case Kind::kForIn:
      Bind(node->Get(Field::kLeft));
      break;
    case Kind::kDefaultParameter:
    case Kind::kTypedDefaultParameter:
      Bind(node->Get(Field::kName));
      break;
    case Kind::kTypedParameter:  // its name has no field
      if (!node->children().empty()) Bind(node->children()[0]);
      break;
    case Kind::kParameters:
      for (const Node* child : node->children()) {
        if (child->kind == Kind::kIdentifier || child->kind == Kind::kListSplatPattern ||
            child->kind == Kind::kDictSplatPattern)
          Bind(child);
      }
      break;
    case Kind::kGlobal:
      for (const Node* child : node->children()) shadow_.insert(child->text);
      break;
    case Kind::kAsPatternTarget:
    case Kind::kDelete:
      for (const Node* child : node->children()) Bind(child);
      break;
    case Kind::kCase:  // patterns give values to names
      for (const Node* child : node->children()) {
        if (child->kind != Kind::kBlock) Bind(child);
      }
      break;
    default:
      break;
  }
}

}  // namespace tritonrl::lint
