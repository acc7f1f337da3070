#include "verify/linter/kernel_analysis.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace tritonrl::lint {
namespace {

// Device functions inside device functions are followed this deep.
constexpr int kMaxDepth = 12;

uint64_t Bit(int parameter) { return uint64_t{1} << std::min(parameter, 63); }

}  // namespace

void KernelAnalysis::Clip(std::string* text) {
  if (text->size() > kMaxText) text->resize(kMaxText);
}

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

KernelAnalysis::Taint KernelAnalysis::Join(const Taint& a, const Taint& b) {
  Taint t;
  t.params = a.params | b.params;
  t.loaded = a.loaded | b.loaded;
  t.arith = a.arith || b.arith;
  const bool a_empty = a.params == 0 && a.loaded == 0, b_empty = b.params == 0 && b.loaded == 0;
  t.address = a_empty                             ? b.address
              : b_empty || a.address == b.address ? a.address
                                                  : a.address + "|" + b.address;
  Clip(&t.address);
  if (a_empty && b_empty && a.constant == b.constant) t.constant = a.constant;
  return t;
}

KernelAnalysis::Taint KernelAnalysis::Mix(const Taint& a, const Taint& b) {
  Taint t = Join(a, b);
  t.constant.reset();
  if (t.loaded != 0) t.arith = true;
  return t;
}

KernelInfo KernelAnalysis::Analyse(const Node* function) {
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
    frame.variables[parameter->name].params = Bit(index++);
  }
  // The first two passes let what flows backwards in loops settle, the last one notes stores.
  for (int pass = 0; pass < 3; ++pass) {
    recording_ = pass == 2;
    steps_ = 0;
    Run(function, &frame);
  }
  return info_;
}

void KernelAnalysis::Run(const Node* function, Frame* frame) {
  if (const Node* body = function->Get(Field::kBody)) Statements(body, frame);
}

void KernelAnalysis::Statements(const Node* block, Frame* frame) {
  if (block->kind != Kind::kBlock && block->kind != Kind::kModule) {
    Statement(block, frame);
    return;
  }
  for (const Node* child : block->children) Statement(child, frame);
}

void KernelAnalysis::Nested(const Node* node, const Taint& condition, Frame* frame) {
  const Taint saved = frame->control;
  frame->control = Mix(saved, condition);
  for (const Node* child : node->children) {
    if (child->kind == Kind::kBlock || child->kind == Kind::kElse || child->kind == Kind::kElif ||
        child->kind == Kind::kFinally || child->kind == Kind::kExcept) {
      child->kind == Kind::kBlock ? Statements(child, frame) : Statement(child, frame);
    }
  }
  frame->control = saved;
}

void KernelAnalysis::Statement(const Node* node, Frame* frame) {
  if (++steps_ > kMaxSteps) return;
  switch (node->kind) {
    case Kind::kAssignment: {
      const Node *left = node->Get(Field::kLeft), *right = node->Get(Field::kRight);
      if (right == nullptr) return;
      Assign(left, Eval(right, frame), frame);
      // A variable stands for its definition as long as it has only one.
      if (left != nullptr && left->kind == Kind::kIdentifier) {
        std::string text = Render(right, *frame);
        auto [it, fresh] = frame->texts.emplace(left->name, text);
        if (!fresh && it->second != text) it->second = std::string(left->text);
      }
      return;
    }
    case Kind::kAugmentedAssignment: {
      Assign(node->Get(Field::kLeft), Binary(node, frame), frame);
      return;
    }
    case Kind::kExpressionStatement:
      for (const Node* child : node->children) {
        const bool assigns =
            child->kind == Kind::kAssignment || child->kind == Kind::kAugmentedAssignment;
        assigns ? Statement(child, frame) : static_cast<void>(Eval(child, frame));
      }
      return;
    case Kind::kReturn:
      frame->returned = Join(frame->returned, Union(node, frame));
      return;
    case Kind::kFor: {
      const Node* right = node->Get(Field::kRight);
      Taint over = right == nullptr ? Taint() : Eval(right, frame);
      Assign(node->Get(Field::kLeft), over, frame);
      Nested(node, over, frame);
      return;
    }
    case Kind::kIf:
    case Kind::kElif:
    case Kind::kWhile: {
      const Node* condition = node->Get(Field::kCondition);
      Nested(node, condition == nullptr ? Taint() : Eval(condition, frame), frame);
      return;
    }
    case Kind::kElse:
    case Kind::kTry:
    case Kind::kExcept:
    case Kind::kFinally:
    case Kind::kWith:
      Nested(node, Taint(), frame);
      return;
    case Kind::kBlock:
      Statements(node, frame);
      return;
    default:
      return;
  }
}

void KernelAnalysis::Assign(const Node* target, const Taint& taint, Frame* frame) {
  if (target == nullptr) return;
  if (target->kind == Kind::kIdentifier) {
    Taint& variable = frame->variables[target->name];
    const bool fresh =
        variable.params == 0 && variable.loaded == 0 && !variable.constant.has_value();
    variable = fresh ? taint : Join(variable, taint);
    return;
  }
  for (const Node* child : target->children) Assign(child, taint, frame);
}

KernelAnalysis::Taint KernelAnalysis::CallDevice(const Node* function, const Node* arguments,
                                                 Frame* frame) {
  if (depth_ >= kMaxDepth) return Mix(Union(arguments, frame), Taint());
  Frame inner;
  inner.function = function;
  inner.control = frame->control;
  int index = 0;
  for (const Node* parameter : ParameterNames(function)) {
    const Node* name = parameter;
    const bool splat =
        parameter->kind == Kind::kListSplatPattern || parameter->kind == Kind::kDictSplatPattern;
    if (splat && !parameter->children.empty()) name = parameter->children[0];
    const Node* argument = splat ? nullptr : Argument(arguments, index, name->text);
    if (argument != nullptr) inner.texts[name->name] = Render(argument, *frame);
    inner.variables[name->name] = argument != nullptr ? Eval(argument, frame)
                                  : splat             ? Union(arguments, frame)
                                                      : Taint();
    ++index;
  }
  ++depth_;
  const bool recording = recording_;
  if (recording) {
    // Settle the function's own loops before its stores are noted.
    recording_ = false;
    Run(function, &inner);
    recording_ = true;
  }
  Run(function, &inner);
  --depth_;
  return inner.returned;
}

KernelAnalysis::Taint KernelAnalysis::Union(const Node* node, Frame* frame) {
  Taint t;
  bool first = true;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kToken) continue;
    t = first ? Eval(child, frame) : Join(t, Eval(child, frame));
    first = false;
  }
  return t;
}

}  // namespace tritonrl::lint
