#include "verify/linter/structure.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tritonrl::lint {
namespace {

// torch.jit is no compiler of Triton.
bool IsTorchJit(const Node* identifier) {
  const Node* around = identifier->parent();
  if (identifier->field != Field::kAttribute || around->kind != Kind::kAttribute) return false;
  const Node* object = around->Get(Field::kObject);
  return object != nullptr && object->text == "torch";
}

// The names under which the program may mention triton.jit.
absl::flat_hash_set<absl::string_view> JitNames(const Program& program) {
  absl::flat_hash_set<absl::string_view> names{"jit", "JITFunction"};
  for (const Import& import : program.imports()) {
    if (absl::EndsWith(import.name, ".jit") || absl::EndsWith(import.name, ".JITFunction"))
      names.insert(import.bound);
  }
  return names;
}

std::vector<const Node*> JitMentions(const Program& program) {
  const absl::flat_hash_set<absl::string_view> names = JitNames(program);
  std::vector<const Node*> mentions;
  for (const Node* identifier : program.identifiers()) {
    if (names.contains(identifier->text) && !IsTorchJit(identifier)) mentions.push_back(identifier);
  }
  return mentions;
}

// The function or class of a statement, without its decorators; null for others.
const Node* Definition(const Node* statement) {
  if (statement->kind == Kind::kDecorated && !statement->children().empty())
    statement = statement->children().back();
  const bool defines = statement->kind == Kind::kFunctionDef || statement->kind == Kind::kClassDef;
  return defines && statement->Get(Field::kName) != nullptr ? statement : nullptr;
}

bool Holds(const Node* node, absl::string_view identifier) {
  return AnyBelow(node, [&](const Node* below) {
    return below->kind == Kind::kIdentifier && below->text == identifier;
  });
}

// True if a class has no bases but object and those whose full name begins with `module`.
bool DerivesFrom(absl::string_view module, const Program& program, const Node* definition) {
  const Node* bases = definition->Get(Field::kSuperclasses);
  return bases == nullptr || absl::c_all_of(bases->children(), [&](const Node* base) {
           return base->text == "object" || absl::StartsWith(program.FullName(base), module);
         });
}

// What stands at the module's level: which definitions code that can run may reach.
class Reach {
 public:
  explicit Reach(const Program& program) : program_(program) {
    for (const Node* statement : program.root()->children()) {
      const Node* definition = Definition(statement);
      if (definition == nullptr) {
        open_.push_back(statement);
        continue;
      }
      const absl::string_view name = definition->Get(Field::kName)->text;
      // A class of its own kind may be entered in a table when it is made.
      if (name == "ModelNew" || !HasTritonDecorators(statement) ||
          !DerivesFrom("torch.", program, definition)) {
        open_.push_back(statement);
      } else {
        units_[name].push_back(definition);
      }
    }
    while (!open_.empty()) {
      const Node* next = open_.back();
      open_.pop_back();
      Mention(next);
    }
  }

  // True if code that can run mentions a definition of the module.
  bool Mentions(absl::string_view name) const { return mentioned_.contains(name); }

 private:
  // True without decorators too: the definition runs only where its name is called.
  bool HasTritonDecorators(const Node* statement) const {
    if (statement->kind != Kind::kDecorated) return true;
    for (const Node* decorator : statement->children()) {
      if (decorator->kind != Kind::kDecorator || decorator->children().empty()) continue;
      const Node* function = decorator->children()[0];
      if (function->kind == Kind::kCall) function = function->Get(Field::kFunction);
      if (!absl::StartsWith(program_.FullName(function), "triton.")) return false;
    }
    return true;
  }

  void Mention(const Node* node) {
    if (program_.IsMainGuarded(node) || node->kind == Kind::kImport ||
        node->kind == Kind::kImportFrom)
      return;
    if (node->kind == Kind::kIdentifier && mentioned_.insert(node->text).second) {
      if (auto it = units_.find(node->text); it != units_.end())
        open_.insert(open_.end(), it->second.begin(), it->second.end());
    }
    for (const Node* child : node->children()) Mention(child);
  }

  const Program& program_;
  std::vector<const Node*> open_;
  absl::flat_hash_map<absl::string_view, std::vector<const Node*>> units_;
  absl::flat_hash_set<absl::string_view> mentioned_;
};

}  // namespace

const Node* OnlyModel(const Program& program) {
  for (const Import& import : program.imports()) {
    if (import.bound == "ModelNew") return nullptr;
  }
  const Node* model = nullptr;
  for (const Node* identifier : program.identifiers()) {
    const Node* around = identifier->parent();
    if (identifier->text != "ModelNew" || identifier->field == Field::kFunction) continue;
    if (around->kind == Kind::kArgumentList && absl::StartsWith(around->parent()->text, "super("))
      continue;
    if (around->kind != Kind::kClassDef || identifier->field != Field::kName ||
        around->parent()->kind != Kind::kModule || model != nullptr)
      return nullptr;
    model = around;
  }
  return model;
}

void FindMissingParts(const Program& program, LintResult* result) {
  if (JitMentions(program).empty() && !program.HasText("jit") && !program.HasText("JITFunction")) {
    result->findings.push_back(
        {LintRule::kNoKernel, 1, "triton.jit", "the program has no Triton kernel (@triton.jit)"});
  }
  if (!program.Mentions("ModelNew") && !program.HasText("ModelNew")) {
    result->findings.push_back(
        {LintRule::kNoModel, 1, "ModelNew", "the program has no class ModelNew"});
    return;
  }
  const Node* model = OnlyModel(program);
  if (model != nullptr && DerivesFrom("torch.nn.Module", program, model) &&
      !Holds(model, "forward") && program.ChangesOf("forward") == 0 &&
      !program.HasText("forward") && !Holds(model, "__call__") && !Holds(model, "__getattr__") &&
      !program.MentionsAny(kLookUp)) {
    result->findings.push_back(
        {LintRule::kNoModel, model->line, "ModelNew", "the class ModelNew has no method forward"});
  }
}

void FindUnusedKernels(const Program& program, LintResult* result) {
  if (program.MentionsAny(kLookUp)) return;
  const Reach reach(program);
  const Node* first = nullptr;
  for (const Node* mention : JitMentions(program)) {
    // Only decorators of the module's functions make kernels that have no other name.
    const Node* node = mention;
    while (node != nullptr && node->kind != Kind::kDecorator) node = node->parent();
    if (node == nullptr || node->parent()->parent()->kind != Kind::kModule) return;
    const Node* kernel = Definition(node->parent());
    if (kernel == nullptr || kernel->kind != Kind::kFunctionDef) return;
    if (reach.Mentions(kernel->Get(Field::kName)->text)) return;
    if (first == nullptr) first = kernel;
  }
  if (first == nullptr) return;
  const std::string name(first->Get(Field::kName)->text);
  result->findings.push_back(
      {LintRule::kKernelNotUsed, first->line, name,
       absl::StrCat("nothing that can run launches the kernel '", name, "' or another one")});
}

}  // namespace tritonrl::lint
