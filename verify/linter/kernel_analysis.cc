#include "verify/linter/kernel_analysis.h"

#include <algorithm>

namespace tritonrl::lint {
namespace {

uint64_t Bit(int parameter) { return uint64_t{1} << std::min(parameter, 63); }

const Node* BlockOf(const Node* clause) {
  for (const Node* child : clause->children) {
    if (child->kind == Kind::kBlock) return child;
  }
  return nullptr;
}

bool IsSequence(const Node* node) {
  return node->kind == Kind::kTuple || node->kind == Kind::kExpressionList ||
         node->kind == Kind::kPatternList || node->kind == Kind::kTuplePattern ||
         node->kind == Kind::kList || node->kind == Kind::kListPattern;
}

}  // namespace

std::vector<const Node*> ParameterNames(const Node* function) {
  std::vector<const Node*> names;
  const Node* parameters = function->Get(Field::kParameters);
  if (parameters == nullptr) return names;
  for (const Node* p : parameters->children) {
    const Node* node = p;
    if (p->kind == Kind::kDefaultParameter || p->kind == Kind::kTypedDefaultParameter) {
      node = p->Get(Field::kName);
    } else if (p->kind == Kind::kTypedParameter && !p->children.empty()) {
      node = p->children[0];
    }
    if (node == nullptr || node->kind == Kind::kPositionalSeparator ||
        node->kind == Kind::kKeywordSeparator) {
      continue;
    }
    names.push_back(node);
  }
  return names;
}

KernelInfo KernelAnalysis::Analyse(const Node* function, const Constants& constants) {
  info_ = KernelInfo();
  info_.line = function->line;
  if (const Node* name = function->Get(Field::kName)) info_.name = std::string(name->text);
  Frame frame;
  frame.function = function;
  int index = 0;
  for (const Node* parameter : ParameterNames(function)) {
    if (parameter->kind == Kind::kListSplatPattern || parameter->kind == Kind::kDictSplatPattern) {
      info_.variadic = true;
      parameter = parameter->children.empty() ? parameter : parameter->children[0];
    }
    info_.parameters.emplace_back(parameter->text);
    Taint& taint = frame.variables[parameter->name];
    if (auto it = constants.find(index); it != constants.end()) taint = it->second;
    taint.params = Bit(index++);
  }
  if (const Node* body = function->Get(Field::kBody)) Statements(body, &frame);
  info_.gave_up = *budget_ <= 0;
  return info_;
}

bool KernelAnalysis::Spend() {
  if (*budget_ <= 0) return false;
  --*budget_;
  return true;
}

const KernelAnalysis::Callee& KernelAnalysis::Resolve(const Node* name, const Frame& frame) {
  auto it = resolved_.find(name);
  if (it == resolved_.end()) it = resolved_.emplace(name, resolve_(name, frame.function)).first;
  return it->second;
}

bool KernelAnalysis::Statements(const Node* block, Frame* frame) {
  if (block == nullptr) return false;
  if (block->kind != Kind::kBlock && block->kind != Kind::kModule) return Statement(block, frame);
  for (const Node* child : block->children) {
    if (Statement(child, frame)) return true;
  }
  return false;
}

// All blocks inside a statement that is neither a branch nor a loop; they may or may not run.
void KernelAnalysis::Nested(const Node* node, Frame* frame) {
  ++frame->nested;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kBlock) {
      Statements(child, frame);
    } else if (child->kind == Kind::kElse || child->kind == Kind::kFinally ||
               child->kind == Kind::kExcept) {
      Nested(child, frame);
    }
  }
  --frame->nested;
}

bool KernelAnalysis::Choose(const std::vector<Clause>& clauses, size_t index, Frame* frame) {
  if (index >= clauses.size()) return false;
  const auto& [condition, block] = clauses[index];
  if (condition == nullptr) return Statements(block, frame);
  const Taint taint = Eval(condition, frame);
  if (std::optional<bool> truth = Truth(taint)) {
    return *truth ? Statements(block, frame) : Choose(clauses, index + 1, frame);
  }
  const Taint saved = frame->control;
  frame->control = Mix(saved, taint);
  ++frame->nested;
  const bool first = Statements(block, frame);
  const bool second = Choose(clauses, index + 1, frame);
  --frame->nested;
  // Behind a branch that returned, the rest runs under its condition.
  if (!first && !second) frame->control = saved;
  return first && second;
}

bool KernelAnalysis::IsEmptyRange(const Node* iterable, Frame* frame) {
  if (iterable->kind != Kind::kCall) return false;
  const Node* function = iterable->Get(Field::kFunction);
  const Node* arguments = iterable->Get(Field::kArguments);
  if (function == nullptr || arguments == nullptr || arguments->kind != Kind::kArgumentList)
    return false;
  const absl::string_view last = function->text.substr(function->text.rfind('.') + 1);
  if (last != "range" && last != "static_range") return false;
  const Node *first = Argument(arguments, 0, "arg1"), *second = Argument(arguments, 1, "arg2");
  if (first == nullptr) return false;
  const Taint start = second == nullptr ? Taint::Number(0) : Eval(first, frame);
  const Taint stop = Eval(second == nullptr ? first : second, frame);
  return Argument(arguments, 2, "step") == nullptr && start.constant.has_value() &&
         stop.constant.has_value() && *stop.constant <= *start.constant;
}

void KernelAnalysis::Loop(const Node* node, Frame* frame) {
  const Node* condition = node->Get(Field::kCondition);
  const Node* iterable = node->Get(Field::kRight);
  if (iterable != nullptr && IsEmptyRange(iterable, frame)) return;
  const bool outer_changed = changed_;
  const Taint saved = frame->control;
  ++frame->nested;
  bool any = false;
  for (int round = 0; round < kMaxLoopRounds; ++round) {
    changed_ = false;
    const Node* over = condition != nullptr ? condition : iterable;
    Taint taint = over == nullptr ? Taint() : Eval(over, frame);
    if (condition != nullptr && Truth(taint) == std::optional<bool>(false)) break;
    taint.constant.reset();
    taint.text.reset();
    if (condition == nullptr) Assign(node->Get(Field::kLeft), taint, frame);
    frame->control = Mix(saved, taint);
    Statements(node->Get(Field::kBody), frame);
    any = any || changed_;
    if (!changed_) break;
  }
  --frame->nested;
  frame->control = saved;
  changed_ = outer_changed || any;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kElse) Nested(child, frame);
  }
}

void KernelAnalysis::Assignment(const Node* node, Frame* frame) {
  const Node *left = node->Get(Field::kLeft), *right = node->Get(Field::kRight);
  if (right == nullptr || left == nullptr) return;
  if (IsSequence(left) && IsSequence(right) && left->children.size() == right->children.size()) {
    std::vector<Taint> values;  // all before the first is assigned: a, b = b, a
    for (const Node* part : right->children) values.push_back(Eval(part, frame));
    for (size_t i = 0; i < values.size(); ++i) Assign(left->children[i], values[i], frame);
    return;
  }
  Assign(left, Eval(right, frame), frame);
  // A variable stands for its definition as long as it has only one.
  if (left->kind == Kind::kIdentifier) {
    std::string text = Render(right, *frame);
    auto [it, fresh] = frame->texts.emplace(left->name, text);
    if (!fresh && it->second != text) it->second = std::string(left->text);
  }
}

bool KernelAnalysis::Statement(const Node* node, Frame* frame) {
  if (!Spend()) return true;
  switch (node->kind) {
    case Kind::kAssignment:
      Assignment(node, frame);
      return false;
    case Kind::kAugmentedAssignment:
      Assign(node->Get(Field::kLeft), Binary(node, frame), frame);
      return false;
    case Kind::kExpressionStatement:
      for (const Node* child : node->children) {
        const bool assigns =
            child->kind == Kind::kAssignment || child->kind == Kind::kAugmentedAssignment;
        assigns ? static_cast<void>(Statement(child, frame))
                : static_cast<void>(Eval(child, frame));
      }
      return false;
    case Kind::kReturn: {
      const Taint value = Union(node, frame);
      frame->returned = frame->returns ? Join(frame->returned, value) : value;
      frame->returns = true;
      return true;
    }
    case Kind::kFor:
    case Kind::kWhile:
      Loop(node, frame);
      return false;
    case Kind::kIf: {
      std::vector<Clause> clauses{{node->Get(Field::kCondition), node->Get(Field::kConsequence)}};
      for (const Node* child : node->children) {
        if (child->kind == Kind::kElif)
          clauses.emplace_back(child->Get(Field::kCondition), child->Get(Field::kConsequence));
        if (child->kind == Kind::kElse) clauses.emplace_back(nullptr, BlockOf(child));
      }
      return Choose(clauses, 0, frame);
    }
    case Kind::kTry:
    case Kind::kWith:
      Nested(node, frame);
      return false;
    case Kind::kBlock:
      return Statements(node, frame);
    default:
      return false;
  }
}

void KernelAnalysis::Assign(const Node* target, const Taint& taint, Frame* frame) {
  if (target == nullptr) return;
  if (target->kind != Kind::kIdentifier) {
    Taint part = taint;  // each target gets another part of it
    part.load = 0;
    part.constant.reset();
    part.text.reset();
    for (const Node* child : target->children) Assign(child, part, frame);
    return;
  }
  auto [it, fresh] = frame->variables.emplace(target->name, taint);
  if (fresh) {
    changed_ = true;
    return;
  }
  Taint updated = frame->nested == 0 ? taint : Join(it->second, taint);
  if (!Settled(it->second, updated)) changed_ = true;
  it->second = std::move(updated);
}

}  // namespace tritonrl::lint
