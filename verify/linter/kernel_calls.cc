// Calls in kernels: loads, stores, functions of Triton and device functions of the program.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/kernel_analysis.h"

namespace tritonrl::lint {
namespace {

// Device functions inside device functions are followed this deep.
constexpr int kMaxDepth = 12;

const Node* RootOf(const Node* node) {
  while (node != nullptr && node->kind == Kind::kAttribute) node = node->Get(Field::kObject);
  return node;
}

bool IsOneOf(absl::string_view name, std::initializer_list<absl::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Operations that move or retype data without computing.
bool IsPassing(absl::string_view name) {
  return IsOneOf(name, {"to", "cast", "broadcast_to", "expand_dims", "reshape", "view", "ravel",
                        "multiple_of", "max_contiguous", "max_constancy", "broadcast", "assume",
                        "static_assert", "debug_barrier", "bitcast", "to_tensor", "constexpr"});
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

Taint KernelAnalysis::OtherArguments(const Node* arguments, const Node* a, const Node* b,
                                     Frame* frame) {
  Taint t;
  for (const Node* argument : arguments->children) {
    const Node* value =
        argument->kind == Kind::kKeywordArgument ? argument->Get(Field::kValue) : argument;
    if (value != nullptr && value != a && value != b) t = Join(t, Eval(value, frame));
  }
  return t;
}

Taint KernelAnalysis::Load(const Taint& pointer, const Taint& others) {
  Taint t;
  t.loaded = pointer.params | pointer.loaded;
  t.arith = pointer.loaded != 0 || others.loaded != 0 || others.structural;
  t.address = pointer.address;
  t.load = ++loads_;
  for (int i = 0; i < 64; ++i) {
    if ((t.loaded >> i) & 1) info_.loaded.insert(i);
  }
  return t;
}

void KernelAnalysis::Store(const Taint& pointer, const Taint& value, const Taint& others,
                           bool atomic, Frame* frame) {
  info_.stores = true;
  const uint64_t through = pointer.params | pointer.loaded;
  for (int i = 0; i < 64; ++i) {
    if ((through >> i) & 1) info_.written.insert(i);
  }
  const bool steered = pointer.loaded != 0 || others.loaded != 0 || frame->control.loaded != 0;
  const bool from_memory = value.loaded != 0 && !value.IsFixed();
  if (!from_memory && !steered) return;
  info_.stores_loaded = true;
  const bool shaped = others.structural || frame->control.structural;
  const bool arith = value.arith && !value.IsCopy();
  if (atomic || steered || shaped || arith || value.address != pointer.address)
    info_.computes = true;
}

Taint KernelAnalysis::Call(const Node* node, Frame* frame) {
  const Node* function = node->Get(Field::kFunction);
  const Node* arguments = node->Get(Field::kArguments);
  if (function == nullptr || arguments == nullptr) return Union(node, frame);
  if (arguments->kind != Kind::kArgumentList) return Eval(arguments, frame);
  const Node* root = RootOf(function);
  const bool local =
      root != nullptr && root->kind == Kind::kIdentifier && frame->variables.count(root->name) > 0;
  if (!local && (function->kind == Kind::kIdentifier || function->kind == Kind::kAttribute)) {
    const Callee& callee = Resolve(function, *frame);
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

Taint KernelAnalysis::CallLibrary(const std::string& name, const Node* arguments, Frame* frame) {
  const absl::string_view last = LastPart(name);
  const bool descriptor = absl::StrContains(last, "descriptor");
  const Node* first = Argument(arguments, 0, descriptor ? "desc" : "pointer");
  if (first == nullptr) first = Argument(arguments, 0, "base");
  if (first == nullptr) return CallMath(last, arguments, nullptr, Taint(), frame);
  const Taint pointer = Eval(first, frame);
  if (IsPointerMaker(last) || last == "advance") {
    Taint t = pointer;
    t.address = absl::StrCat(t.address, AddressText(arguments, first, *frame));
    ClipText(&t.address);
    return t;
  }
  if (IsLoadName(last) && last != "gather") {
    return Load(pointer, OtherArguments(arguments, first, Argument(arguments, 2, "other"), frame));
  }
  if (IsStoreName(last)) {
    const bool at_one = last == "store" || (descriptor && last != "store_tensor_descriptor");
    const Node* value = Argument(arguments, at_one ? 1 : 2, "value");
    if (last == "store" && IsMaskedOut(Argument(arguments, 2, "mask"), frame)) return {};
    Taint stored =
        value == nullptr ? OtherArguments(arguments, first, nullptr, frame) : Eval(value, frame);
    Store(pointer, stored, OtherArguments(arguments, first, value, frame), descriptor, frame);
    return {};
  }
  if (absl::StartsWith(last, "atomic_")) {
    if (IsMaskedOut(Argument(arguments, 2, "mask"), frame)) return {};
    const Taint value = OtherArguments(arguments, first, nullptr, frame);
    Store(pointer, value, Taint(), /*atomic=*/true, frame);
    return Load(pointer, value);
  }
  return CallMath(last, arguments, first, pointer, frame);
}

bool KernelAnalysis::IsMaskedOut(const Node* mask, Frame* frame) {
  if (mask == nullptr) return false;
  const Taint condition = Eval(mask, frame);
  // None, as generated code writes it, is no mask at all.
  if (condition.text == std::string(Taint::kNoneText)) return false;
  return Truth(condition) == std::optional<bool>(false);
}

Taint KernelAnalysis::Where(const Taint& condition, const Node* arguments, Frame* frame) {
  const Node *a = Argument(arguments, 1, "x"), *b = Argument(arguments, 2, "y");
  const Taint x = a == nullptr ? Taint() : Eval(a, frame),
              y = b == nullptr ? Taint() : Eval(b, frame);
  if (std::optional<bool> truth = Truth(condition)) return *truth ? x : y;
  if (SameLoad(x, y)) return x;
  if (condition.loaded == 0 && !condition.structural && (x.loaded == 0 || y.loaded == 0)) {
    return Join(x, y);  // the guard of a bound
  }
  return Mix(condition, Mix(x, y));
}

Taint KernelAnalysis::CallMath(absl::string_view last, const Node* arguments,
                               const Node* first_node, const Taint& first, Frame* frame) {
  if (last == "where") return Where(first, arguments, frame);
  if (IsPassing(last)) return first;
  if (last == "program_id" || last == "arange" || last == "num_programs") {
    Taint t = Join(first, OtherArguments(arguments, first_node, nullptr, frame));
    t.nonnegative = last != "arange" || first.nonnegative;
    t.index = true;
    t.constant.reset();
    return t;
  }
  if (IsOneOf(last, {"maximum", "minimum", "fmax", "fmin", "max", "min"})) {
    const Node* second = Argument(arguments, 1, "y");
    if (second != nullptr) {
      const Taint other = Eval(second, frame);
      if (SameLoad(first, other)) return first;
      Taint t = Mix(first, other);
      t.nonnegative = first.nonnegative && other.nonnegative;
      return t;
    }
  }
  Taint t = OtherArguments(arguments, first_node, nullptr, frame);
  if (first_node != nullptr) t = Join(first, t);
  if (last == "inline_asm_elementwise" && t.params != 0 &&
      absl::StrContains(arguments->text, "st.global")) {
    Store(t, t, t, true, frame);
  }
  const bool nonnegative = last == "cdiv" && t.nonnegative;
  t = Mix(t, t);
  t.nonnegative = nonnegative;
  return t;
}

Taint KernelAnalysis::CallMethod(const Taint& object, absl::string_view name, const Node* arguments,
                                 Frame* frame) {
  if (IsLoadName(name) && object.params != 0 && object.loaded == 0) {
    Taint pointer = object;
    absl::StrAppend(&pointer.address, Render(arguments, *frame));
    ClipText(&pointer.address);
    return Load(pointer, Taint());
  }
  if (IsStoreName(name) || (absl::StartsWith(name, "atomic_") && object.params != 0)) {
    const Node* value = Argument(arguments, 1, "value");
    Store(object, value == nullptr ? Union(arguments, frame) : Eval(value, frame), Taint(),
          /*atomic=*/true, frame);
    return {};
  }
  if (IsPassing(name)) return object;
  return Mix(object, Union(arguments, frame));
}

Taint KernelAnalysis::CallDevice(const Node* function, const Node* arguments, Frame* frame) {
  if (depth_ >= kMaxDepth) return Mix(Union(arguments, frame), Taint());
  Frame inner;
  inner.function = function;
  inner.control = frame->control;
  int index = 0;
  const std::vector<const Node*> parameters = ParameterNames(function);
  // Each looks for its argument among all.
  *budget_ -= static_cast<int>(parameters.size() * arguments->children.size() / 64);
  for (const Node* parameter : parameters) {
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
  const bool changed = changed_;  // its variables are new in each call
  if (const Node* body = function->Get(Field::kBody)) Statements(body, &inner);
  changed_ = changed;
  --depth_;
  inner.returned.load = inner.nested == 0 ? inner.returned.load : 0;
  return inner.returned;
}

}  // namespace tritonrl::lint
