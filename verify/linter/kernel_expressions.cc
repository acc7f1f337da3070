// Expressions and calls in kernels.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "verify/linter/kernel_analysis.h"

namespace tritonrl::lint {
namespace {

const Node* RootOf(const Node* node) {
  while (node != nullptr && node->kind == Kind::kAttribute) node = node->Get(Field::kObject);
  return node;
}

std::optional<double> Number(const Node* node) {
  double value = 0;
  if (!absl::SimpleAtod(node->text, &value)) return std::nullopt;
  return value;
}

bool Is(const std::optional<double>& constant, double value) {
  return constant.has_value() && *constant == value;
}

// True for x op c that gives back x.
bool IsIdentity(absl::string_view op, const std::optional<double>& right) {
  if (op == "+" || op == "-") return Is(right, 0);
  if (op == "*" || op == "/" || op == "**" || op == "//") return Is(right, 1);
  return false;
}

// Operations that move or retype data without computing.
bool IsPassing(absl::string_view name) {
  for (absl::string_view passing :
       {"to", "cast", "broadcast_to", "expand_dims", "reshape", "view", "ravel", "multiple_of",
        "max_contiguous", "max_constancy", "broadcast", "assume", "static_assert", "debug_barrier",
        "bitcast"}) {
    if (name == passing) return true;
  }
  return false;
}

bool IsPointerMaker(absl::string_view name) {
  return absl::StrContains(name, "make_block_ptr") ||
         absl::StrContains(name, "make_tensor_descriptor") ||
         absl::StrContains(name, "reinterpret_tensor_descriptor");
}

absl::string_view LastPart(absl::string_view name) { return name.substr(name.rfind('.') + 1); }

bool IsLoadName(absl::string_view last) {
  return last == "load" || absl::EndsWith(last, "descriptor_load") ||
         absl::EndsWith(last, "gather_load") || last == "load_tensor_descriptor" ||
         last == "async_copy_global_to_shared" || last == "gather";
}

bool IsStoreName(absl::string_view last) {
  return last == "store" || absl::EndsWith(last, "descriptor_store") ||
         last == "store_tensor_descriptor" || last == "scatter";
}

}  // namespace

KernelAnalysis::Taint KernelAnalysis::Eval(const Node* node, Frame* frame) {
  if (++steps_ > kMaxSteps) return {};
  switch (node->kind) {
    case Kind::kIdentifier:
      return Identifier(node, frame);
    case Kind::kInteger:
    case Kind::kFloat: {
      Taint t;
      t.constant = Number(node);
      return t;
    }
    case Kind::kBinary:
      return Binary(node, frame);
    case Kind::kCall:
      return Call(node, frame);
    case Kind::kUnary: {
      Taint t = Union(node, frame);
      if (t.constant.has_value() && absl::StartsWith(node->text, "-")) t.constant = -*t.constant;
      if (t.loaded != 0) t.arith = true;
      return t;
    }
    case Kind::kComparison:
    case Kind::kBoolean:
    case Kind::kNot: {
      Taint t = Union(node, frame);
      if (t.loaded != 0) t.arith = true;
      t.constant.reset();
      return t;
    }
    case Kind::kSubscript: {
      const Node* value = node->Get(Field::kValue);
      return value == nullptr ? Taint() : Eval(value, frame);
    }
    case Kind::kAttribute: {
      const Node* object = node->Get(Field::kObject);
      Taint t = object == nullptr ? Taint() : Eval(object, frame);
      const Node* attribute = node->Get(Field::kAttribute);
      if (t.loaded != 0 && attribute != nullptr && attribute->text == "T") t.arith = true;
      return t;
    }
    case Kind::kString:
    case Kind::kLambda:
      return {};
    default:
      return Union(node, frame);
  }
}

KernelAnalysis::Taint KernelAnalysis::Identifier(const Node* node, Frame* frame) {
  auto it = frame->variables.find(node->name);
  if (it != frame->variables.end()) return it->second;
  Taint t;
  const Callee callee = resolve_(node, frame->function);
  t.constant = callee.constant;
  if (callee.undefined) {
    // Left to the compiler, which will refuse it: nothing is concluded from its value.
    t.loaded = uint64_t{1} << 63;
    t.arith = true;
  }
  return t;
}

KernelAnalysis::Taint KernelAnalysis::Binary(const Node* node, Frame* frame) {
  const Node* left = node->Get(Field::kLeft);
  const Node* right = node->Get(Field::kRight);
  const Node* op_node = node->Get(Field::kOperator);
  if (left == nullptr || right == nullptr || op_node == nullptr) return Union(node, frame);
  absl::string_view op = op_node->text;
  absl::ConsumeSuffix(&op, "=");
  const Taint a = Eval(left, frame), b = Eval(right, frame);
  if (a.loaded != 0 && IsIdentity(op, b.constant)) return a;
  if (b.loaded != 0 && (op == "+" || op == "*") && IsIdentity(op, a.constant)) return b;
  Taint t = Mix(a, b);
  if (a.loaded == 0 && b.loaded == 0) {
    // A pointer with something added: remember what.
    t.address = absl::StrCat(a.address, op, Render(a.params != 0 ? right : node, *frame));
    Clip(&t.address);
  }
  return t;
}

const Node* KernelAnalysis::Argument(const Node* arguments, int index, absl::string_view name) {
  int position = 0;
  for (const Node* argument : arguments->children) {
    if (argument->kind == Kind::kKeywordArgument) {
      const Node* key = argument->Get(Field::kName);
      if (key != nullptr && key->text == name) return argument->Get(Field::kValue);
    } else if (position++ == index) {
      return argument;
    }
  }
  return nullptr;
}

KernelAnalysis::Taint KernelAnalysis::OtherArguments(const Node* arguments, const Node* a,
                                                     const Node* b, Frame* frame) {
  Taint t;
  for (const Node* argument : arguments->children) {
    const Node* value =
        argument->kind == Kind::kKeywordArgument ? argument->Get(Field::kValue) : argument;
    if (value != nullptr && value != a && value != b) t = Join(t, Eval(value, frame));
  }
  return t;
}

std::string KernelAnalysis::Render(const Node* node, const Frame& frame) {
  while (node->kind == Kind::kParenthesized && node->children.size() == 1) node = node->children[0];
  if (node->kind == Kind::kIdentifier) {
    auto it = frame.texts.find(node->name);
    return it == frame.texts.end() ? std::string(node->text) : it->second;
  }
  if (node->children.empty()) return std::string(node->text);
  std::string text = absl::StrCat("<", static_cast<int>(node->kind));
  for (const Node* child : node->children) {
    absl::StrAppend(&text, " ", Render(child, frame));
    if (text.size() > kMaxText) break;
  }
  Clip(&text);
  return text + ">";
}

std::string KernelAnalysis::AddressText(const Node* arguments, const Node* base,
                                        const Frame& frame) {
  std::string text;
  for (const Node* argument : arguments->children) {
    const Node* value =
        argument->kind == Kind::kKeywordArgument ? argument->Get(Field::kValue) : argument;
    if (value != base) absl::StrAppend(&text, ",", Render(argument, frame));
  }
  return text;
}

KernelAnalysis::Taint KernelAnalysis::Load(const Taint& pointer, const Taint& others) {
  Taint t;
  t.loaded = pointer.params | pointer.loaded;
  t.arith = pointer.loaded != 0 || others.loaded != 0;
  t.address = pointer.address;
  if (recording_) {
    for (int i = 0; i < 64; ++i) {
      if ((t.loaded >> i) & 1) info_.loaded.insert(i);
    }
  }
  return t;
}

void KernelAnalysis::Store(const Taint& pointer, const Taint& value, const Taint& others,
                           bool atomic, Frame* frame) {
  if (!recording_) return;
  info_.stores = true;
  const uint64_t through = pointer.params | pointer.loaded;
  for (int i = 0; i < 64; ++i) {
    if ((through >> i) & 1) info_.written.insert(i);
  }
  const bool steered = pointer.loaded != 0 || others.loaded != 0 || frame->control.loaded != 0;
  if (value.loaded == 0 && !steered) return;
  info_.stores_loaded = true;
  if (atomic || steered || value.arith || value.address != pointer.address) info_.computes = true;
}

KernelAnalysis::Taint KernelAnalysis::Call(const Node* node, Frame* frame) {
  const Node* function = node->Get(Field::kFunction);
  const Node* arguments = node->Get(Field::kArguments);
  if (function == nullptr || arguments == nullptr) return Union(node, frame);
  if (arguments->kind != Kind::kArgumentList) return Eval(arguments, frame);
  const Node* root = RootOf(function);
  const bool local =
      root != nullptr && root->kind == Kind::kIdentifier && frame->variables.count(root->name) > 0;
  if (!local && (function->kind == Kind::kIdentifier || function->kind == Kind::kAttribute)) {
    Callee callee = resolve_(function, frame->function);
    if (callee.function != nullptr) return CallDevice(callee.function, arguments, frame);
    if (!callee.symbol.empty()) return CallLibrary(callee.symbol, arguments, frame);
  }
  if (function->kind == Kind::kAttribute) {
    const Node* object = function->Get(Field::kObject);
    const Node* attribute = function->Get(Field::kAttribute);
    if (object != nullptr && attribute != nullptr) {
      return CallMethod(Eval(object, frame), attribute->text, arguments, frame);
    }
  }
  // Something that cannot be followed: it may store through whatever it is given.
  Taint t = Mix(Union(arguments, frame), Eval(function, frame));
  if (t.params != 0) Store(t, t, t, /*atomic=*/true, frame);
  return t;
}

KernelAnalysis::Taint KernelAnalysis::CallLibrary(const std::string& name, const Node* arguments,
                                                  Frame* frame) {
  const absl::string_view last = LastPart(name);
  const bool descriptor = absl::StrContains(last, "descriptor");
  const Node* first = Argument(arguments, 0, descriptor ? "desc" : "pointer");
  if (first == nullptr) first = Argument(arguments, 0, "base");
  if (first == nullptr) return Union(arguments, frame);
  const Taint pointer = Eval(first, frame);
  if (IsPointerMaker(last) || last == "advance") {
    Taint t = pointer;
    t.address = absl::StrCat(t.address, AddressText(arguments, first, *frame));
    return t;
  }
  if (IsLoadName(last) && last != "gather") {
    return Load(pointer, OtherArguments(arguments, first, Argument(arguments, 2, "other"), frame));
  }
  if (IsStoreName(last)) {
    const Node* value = Argument(arguments,
                                 descriptor && last != "store_tensor_descriptor" ? 1
                                 : last == "store"                               ? 1
                                                                                 : 2,
                                 "value");
    Taint stored =
        value == nullptr ? OtherArguments(arguments, first, nullptr, frame) : Eval(value, frame);
    Store(pointer, stored, OtherArguments(arguments, first, value, frame), descriptor, frame);
    return {};
  }
  if (absl::StartsWith(last, "atomic_")) {
    const Taint value = OtherArguments(arguments, first, nullptr, frame);
    Store(pointer, value, Taint(), /*atomic=*/true, frame);
    return Load(pointer, value);
  }
  if (last == "inline_asm_elementwise") {
    Taint t = Union(arguments, frame);
    if (t.params != 0 && absl::StrContains(arguments->text, "st.global"))
      Store(t, t, t, true, frame);
    if (t.loaded != 0) t.arith = true;
    return t;
  }
  if (last == "where") {
    const Node *a = Argument(arguments, 1, "x"), *b = Argument(arguments, 2, "y");
    const Taint x = a == nullptr ? Taint() : Eval(a, frame),
                y = b == nullptr ? Taint() : Eval(b, frame);
    if (pointer.loaded == 0 && (x.loaded == 0 || y.loaded == 0)) return Join(x, y);
    return Mix(pointer, Mix(x, y));
  }
  if (IsPassing(last)) return pointer;
  Taint t = Union(arguments, frame);
  t.constant.reset();
  if (t.loaded != 0) t.arith = true;
  return t;
}

KernelAnalysis::Taint KernelAnalysis::CallMethod(const Taint& object, absl::string_view name,
                                                 const Node* arguments, Frame* frame) {
  const Taint rest = Union(arguments, frame);
  if (IsLoadName(name) && object.params != 0 && object.loaded == 0) {
    Taint pointer = object;
    absl::StrAppend(&pointer.address, Render(arguments, *frame));
    return Load(pointer, Taint());
  }
  if (IsStoreName(name) || (absl::StartsWith(name, "atomic_") && object.params != 0)) {
    const Node* value = Argument(arguments, 1, "value");
    Store(object, value == nullptr ? rest : Eval(value, frame), Taint(), /*atomic=*/true, frame);
    return {};
  }
  if (IsPassing(name)) return object;
  return Mix(object, rest);
}

}  // namespace tritonrl::lint
