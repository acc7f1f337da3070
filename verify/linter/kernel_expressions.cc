// Expressions in kernels.
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "verify/linter/interpreter.h"
#include "verify/linter/kernel_analysis.h"

namespace tritonrl::lint {

Taint KernelAnalysis::Eval(const Node* node, Frame* frame) {
  if (!Spend()) return {};
  switch (node->kind) {
    case Kind::kIdentifier:
      return Identifier(node, frame);
    case Kind::kInteger:
    case Kind::kFloat: {
      double value = 0;
      return absl::SimpleAtod(node->text, &value) ? Taint::Number(value) : Taint();
    }
    case Kind::kTrue:
    case Kind::kFalse:
      return Taint::Number(node->kind == Kind::kTrue ? 1 : 0);
    case Kind::kNone: {
      Taint t;
      t.text = Taint::kNoneText;
      return t;
    }
    case Kind::kString: {
      Taint t;
      t.text = PlainString(node);
      return t;
    }
    case Kind::kBinary:
      return Binary(node, frame);
    case Kind::kCall:
      return Call(node, frame);
    case Kind::kUnary:
    case Kind::kNot:
      return Unary(node, frame);
    case Kind::kComparison:
      return Compare(node, frame);
    case Kind::kBoolean:
      return Boolean(node, frame);
    case Kind::kParenthesized:
      return node->children.size() == 1 ? Eval(node->children[0], frame) : Union(node, frame);
    case Kind::kConditional: {
      if (node->children.size() != 3) return Union(node, frame);
      const Taint condition = Eval(node->children[1], frame);
      if (std::optional<bool> truth = Truth(condition))
        return Eval(node->children[*truth ? 0 : 2], frame);
      return Join(Eval(node->children[0], frame), Eval(node->children[2], frame));
    }
    case Kind::kSubscript: {
      const Node* value = node->Get(Field::kValue);
      return value == nullptr ? Taint() : Eval(value, frame);
    }
    case Kind::kAttribute: {
      const Node* object = node->Get(Field::kObject);
      Taint t = object == nullptr ? Taint() : Eval(object, frame);
      const Node* attribute = node->Get(Field::kAttribute);
      t.constant.reset();
      t.text.reset();
      if (t.loaded != 0 && attribute != nullptr && attribute->text == "T") {
        t.arith = true;
        t.load = 0;
      }
      return t;
    }
    case Kind::kLambda:
      return {};
    default:
      return Union(node, frame);
  }
}

Taint KernelAnalysis::Union(const Node* node, Frame* frame) {
  Taint t;
  bool first = true;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kToken) continue;
    t = first ? Eval(child, frame) : Join(t, Eval(child, frame));
    first = false;
  }
  return t;
}

Taint KernelAnalysis::Identifier(const Node* node, Frame* frame) {
  auto it = frame->variables.find(node->name);
  if (it != frame->variables.end()) return it->second;
  const Callee& callee = Resolve(node, *frame);
  Taint t = callee.constant.has_value() ? Taint::Number(*callee.constant) : Taint();
  if (callee.undefined) {
    // Left to the compiler, which will refuse it: nothing is concluded from its value.
    t.loaded = uint64_t{1} << 63;
    t.arith = true;
  }
  return t;
}

Taint KernelAnalysis::Binary(const Node* node, Frame* frame) {
  const Node* left = node->Get(Field::kLeft);
  const Node* right = node->Get(Field::kRight);
  const Node* op_node = node->Get(Field::kOperator);
  if (left == nullptr || right == nullptr || op_node == nullptr) return Union(node, frame);
  absl::string_view op = op_node->text;
  if (op.size() > 1) absl::ConsumeSuffix(&op, "=");
  const Taint a = Eval(left, frame), b = Eval(right, frame);
  Taint t = Arithmetic(op, a, b);
  if (a.loaded == 0 && b.loaded == 0 && !t.constant.has_value()) {
    // A pointer with something added: remember what.
    t.address = absl::StrCat(a.address, op, Render(a.params != 0 ? right : node, *frame));
    ClipText(&t.address);
  }
  return t;
}

Taint KernelAnalysis::Unary(const Node* node, Frame* frame) {
  const Node* argument = node->Get(Field::kArgument);
  const Taint t = argument == nullptr ? Union(node, frame) : Eval(argument, frame);
  if (node->kind == Kind::kUnary && absl::StartsWith(node->text, "-")) return Negated(t);
  if (node->kind == Kind::kUnary && absl::StartsWith(node->text, "+")) return t;
  if (node->kind == Kind::kNot) {
    if (std::optional<bool> truth = Truth(t)) return Taint::Number(*truth ? 0 : 1);
  }
  return Mix(t, t);
}

Taint KernelAnalysis::Compare(const Node* node, Frame* frame) {
  std::optional<Taint> left, result;
  std::string op;
  for (const Node* child : node->children) {
    if (child->field == Field::kOperators) {
      op = std::string(child->text);
      continue;
    }
    Taint right = Eval(child, frame);
    if (left.has_value()) {
      const Taint compared = Comparison(op, *left, right);
      result = result.has_value() ? Arithmetic("&", *result, compared) : compared;
    }
    left = std::move(right);
  }
  return result.has_value() ? *result : Taint();
}

Taint KernelAnalysis::Boolean(const Node* node, Frame* frame) {
  const Node *left = node->Get(Field::kLeft), *right = node->Get(Field::kRight);
  const Node* op = node->Get(Field::kOperator);
  if (left == nullptr || right == nullptr || op == nullptr) return Union(node, frame);
  const Taint a = Eval(left, frame), b = Eval(right, frame);
  const bool is_and = op->text == "and";
  for (const Taint* side : {&a, &b}) {
    if (std::optional<bool> truth = Truth(*side); truth.has_value() && *truth != is_and)
      return Taint::Number(is_and ? 0 : 1);
  }
  if (Truth(a).has_value() && Truth(b).has_value()) return Taint::Number(is_and ? 1 : 0);
  return Mix(a, b);
}

std::string KernelAnalysis::Render(const Node* node, const Frame& frame) {
  while (node->kind == Kind::kParenthesized && node->children.size() == 1) node = node->children[0];
  if (node->kind == Kind::kIdentifier) {
    auto it = frame.texts.find(node->name);
    return it == frame.texts.end() ? std::string(node->text) : it->second;
  }
  if (node->children.empty()) return std::string(node->text.substr(0, kMaxAddressText));
  std::string text = absl::StrCat("<", static_cast<int>(node->kind));
  for (const Node* child : node->children) {
    absl::StrAppend(&text, " ", Render(child, frame));
    if (text.size() > kMaxAddressText) break;
  }
  ClipText(&text);
  return text + ">";
}

std::string KernelAnalysis::AddressText(const Node* arguments, const Node* base,
                                        const Frame& frame) {
  std::string text;
  for (const Node* argument : arguments->children) {
    const Node* value =
        argument->kind == Kind::kKeywordArgument ? argument->Get(Field::kValue) : argument;
    if (value != base) absl::StrAppend(&text, ",", Render(argument, frame));
    if (text.size() > kMaxAddressText) break;
  }
  return text;
}

}  // namespace tritonrl::lint
