// Operators, subscripts and iteration.
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

// Special methods of operators, tried on instances of the program's own classes.
absl::string_view MethodOf(absl::string_view op) {
  constexpr std::pair<absl::string_view, absl::string_view> kMethods[] = {
      {"+", "__add__"},       {"-", "__sub__"},  {"*", "__mul__"},    {"/", "__truediv__"},
      {"//", "__floordiv__"}, {"%", "__mod__"},  {"**", "__pow__"},   {"@", "__matmul__"},
      {"&", "__and__"},       {"|", "__or__"},   {"^", "__xor__"},    {"<<", "__lshift__"},
      {">>", "__rshift__"},   {"==", "__eq__"},  {"!=", "__ne__"},    {"<", "__lt__"},
      {"<=", "__le__"},       {">", "__gt__"},   {">=", "__ge__"},    {"in", "__contains__"},
      {"-x", "__neg__"},      {"+x", "__pos__"}, {"~x", "__invert__"}};
  for (const auto& [name, method] : kMethods) {
    if (name == op) return method;
  }
  return "";
}

bool IsText(Value value) {
  const HostObject* host = AsHost(value);
  return host != nullptr && std::holds_alternative<std::string>(host->constant);
}

std::optional<double> Number(const HostObject* host) {
  // Beyond this size a double no longer tells neighbours apart.
  constexpr int64_t kExact = int64_t{1} << 53;
  if (const auto* i = std::get_if<int64_t>(&host->constant)) {
    if (*i > kExact || *i < -kExact) return std::nullopt;
    return static_cast<double>(*i);
  }
  if (const auto* d = std::get_if<double>(&host->constant)) return *d;
  if (const auto* b = std::get_if<bool>(&host->constant)) return *b ? 1.0 : 0.0;
  return std::nullopt;
}

// The result of an integer operation, where it is defined and small.
std::optional<int64_t> FoldInt(absl::string_view op, int64_t a, int64_t b) {
  constexpr int64_t kLimit = int64_t{1} << 31;
  if (a > kLimit || b > kLimit || a < -kLimit || b < -kLimit) return std::nullopt;
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "//" && a >= 0 && b > 0) return a / b;
  if (op == "%" && a >= 0 && b > 0) return a % b;
  if (op == "<<" && b >= 0 && b < 31 && a >= 0) return a << b;
  if (op == "**" && a == 2 && b >= 0 && b < 31) return int64_t{1} << b;
  return std::nullopt;
}

std::optional<bool> FoldComparison(absl::string_view op, double a, double b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  return std::nullopt;
}

}  // namespace

Value Interpreter::Elementwise(const std::string& name, const std::vector<Value>& values,
                               int line) {
  StorageSet sources;
  bool small = true, any_tensor = false, any_remote = false;
  for (Value value : values) {
    AddTo(&sources, Reachable(value));
    if (IsRemote(value)) {
      any_remote = true;
    } else if (const auto* tensor = AsTensor(value)) {
      any_tensor = true;
      small = small && tensor->IsSmall();
    } else if (HoldsTensor(value)) {
      any_tensor = true;
      small = false;
    }
  }
  if (!any_tensor) {
    if (any_remote) return arena_.Remote(sources);
    CheckNumbers(name, values, line);
    return arena_.Host(sources);
  }
  if (!small || name == "@" || InPieces(sources) || !IsPostProcessing(values))
    return Compute(name, line, sources);
  int tensors = 0;
  Shape shape;  // one tensor among numbers gives its shape
  for (Value value : values) {
    if (const auto* tensor = AsTensor(value); tensor != nullptr && ++tensors == 1)
      shape = tensor->shape;
  }
  return NewTensor(sources, tensors == 1 ? shape : std::vector<int64_t>{1});
}

Value Interpreter::Binary(absl::string_view op, Value a, Value b, int line) {
  if (auto* x = AsHost(a), *y = AsHost(b); x != nullptr && y != nullptr) {
    CheckNumbers(std::string(op), {a, b}, line);
    return BinaryHost(op, x, y);
  }
  for (Value side : {a, b}) {
    if (auto* instance = AsInstance(side); instance != nullptr && instance->type != nullptr) {
      Value other = side == a ? b : a;
      std::string method(MethodOf(op));
      std::string symbol;
      if (side == b && side != a)
        method = absl::StrCat("__r", method.substr(std::min<size_t>(2, method.size())));
      Value found = ClassAttribute(instance->type, method, &symbol);
      if (found != nullptr)
        return Call(BindMethod(found, instance, instance->type),
                    {.positional = {other}, .line = line});
    }
  }
  if (auto* x = AsList(a), *y = AsList(b); op == "+" && x != nullptr && y != nullptr) {
    std::vector<Value> items = x->items;
    items.insert(items.end(), y->items.begin(), y->items.end());
    return arena_.List(std::move(items), x->exact && y->exact);
  }
  if (op == "|" && AsDict(a) != nullptr && AsDict(b) != nullptr) {
    Value merged = CallDictMethod(AsDict(a), "copy", {.line = line});
    CallDictMethod(AsDict(merged), "update", {.positional = {b}, .line = line});
    return merged;
  }
  for (auto [list, other] : {std::pair{AsList(a), b}, std::pair{AsList(b), a}}) {
    if (list == nullptr || AsHost(other) == nullptr) continue;
    if (op == "*") {
      const std::optional<int64_t> times = ConstantInt(other);
      std::vector<Value> items;
      const bool known = times.has_value() && *times >= 0 && *times * list->items.size() <= 64;
      for (int64_t i = 0; known && i < *times; ++i) {
        items.insert(items.end(), list->items.begin(), list->items.end());
      }
      return known ? arena_.List(items, list->exact) : arena_.List(list->items, false);
    }
    if (op == "+") return arena_.List(list->items, false);  // with a size
  }
  return Elementwise(std::string(op), {a, b}, line);
}

Value Interpreter::BinaryHost(absl::string_view op, HostObject* a, HostObject* b) {
  StorageSet sources = a->sources;
  AddTo(&sources, b->sources);
  auto* x = std::get_if<int64_t>(&a->constant);
  auto* y = std::get_if<int64_t>(&b->constant);
  if (x != nullptr && y != nullptr) {
    if (std::optional<int64_t> folded = FoldInt(op, *x, *y)) return arena_.Constant(*folded);
  }
  if (op == "+") {
    const auto* s = std::get_if<std::string>(&a->constant);
    const auto* t = std::get_if<std::string>(&b->constant);
    if (s != nullptr && t != nullptr && s->size() + t->size() <= kLongestText)
      return arena_.Constant(absl::StrCat(*s, *t));
  }
  auto* result = arena_.New<HostObject>();
  if (const auto* text = std::get_if<std::string>(&a->constant)) {
    if (op == "+") result->prefix = *text;
    if (op == "%") result->prefix = text->substr(0, text->find('%'));
  } else if (op == "+") {
    result->prefix = a->prefix;
  }
  result->is_int = a->is_int && b->is_int && op != "/";
  result->is_shape = (a->is_shape || b->is_shape) && op == "+";
  auto is_size = [](const HostObject* host, const int64_t* constant) {
    return host->is_size || (constant != nullptr && *constant >= 0);
  };
  const bool grows = op == "+" || op == "*" || op == "//" || op == "%";
  result->is_size = result->is_int && grows && is_size(a, x) && is_size(b, y);
  result->sources = std::move(sources);
  result->addresses = a->addresses;
  AddTo(&result->addresses, b->addresses);
  return result;
}

Value Interpreter::Unary(absl::string_view op, Value a, int line) {
  if (op == "not") {
    const std::optional<bool> truth = Decide(a);
    if (truth.has_value()) return arena_.Constant(!*truth);
    // Of containers Python asks the length, of objects a method that is looked at by itself.
    const bool asks_elements = AsHost(a) == nullptr && AsList(a) == nullptr &&
                               AsDict(a) == nullptr && AsInstance(a) == nullptr;
    if (asks_elements && HoldsTensor(a)) Elementwise("not", {a}, line);
    return Counts(Reachable(a)) ? CountOfCalls() : arena_.Host();
  }
  if (auto* host = AsHost(a)) {
    if (op == "-") {
      if (const auto* i = std::get_if<int64_t>(&host->constant)) return arena_.Constant(-*i);
      if (const auto* d = std::get_if<double>(&host->constant)) return arena_.Constant(-*d);
    }
    return host->is_int ? arena_.Int(host->sources) : arena_.Host(host->sources);
  }
  if (auto* instance = AsInstance(a); instance != nullptr && instance->type != nullptr) {
    std::string symbol;
    Value found = ClassAttribute(instance->type, MethodOf(absl::StrCat(op, "x")), &symbol);
    if (found != nullptr) return Call(BindMethod(found, instance, instance->type), {.line = line});
  }
  return Elementwise(std::string(op), {a}, line);
}

// Where a call compares with the address or an element of an earlier call's argument it is about to
// return what it kept.
void Interpreter::CheckAddresses(const std::vector<Value>& values, int line) {
  for (Value value : arena_.Flat(arena_.List(values))) {
    auto* host = AsHost(value);
    if (host == nullptr) continue;
    StorageSet known_by = host->addresses;
    AddTo(&known_by, host->sources);
    for (int storage : known_by) {
      if (!storages_[storage].argument || storage >= first_call_storages_) continue;
      Find(LintRule::kHardCoded, line, "cache by address",
           "the address, identity or an element of a tensor is compared with that of an earlier "
           "call, whose result would be returned for other contents");
    }
  }
}

Value Interpreter::Compare(absl::string_view op, Value a, Value b, int line) {
  if (first_call_storages_ > 0) CheckAddresses({a, b}, line);
  if (absl::StartsWith(op, "is")) {
    const bool negated = op != "is";
    if (IsNone(a) && IsNone(b)) return arena_.Constant(!negated);
    auto never_none = [](Value v) {
      if (v == nullptr) return false;
      if (auto* symbol = AsSymbol(v))  // an imported module; what libraries hold may be None
        return symbol->name == "torch" || symbol->name == "torch.nn" ||
               symbol->name == "torch.nn.functional" || absl::StartsWith(symbol->name, "triton");
      return v->kind != ObjectKind::kHost && v->kind != ObjectKind::kUnion &&
             v->kind != ObjectKind::kUnknown && v->kind != ObjectKind::kMethod;
    };
    if ((IsNone(a) && never_none(b)) || (IsNone(b) && never_none(a)))
      return arena_.Constant(negated);
    return arena_.Host();
  }
  if (auto* x = AsHost(a), *y = AsHost(b); x != nullptr && y != nullptr) {
    const std::optional<double> left = Number(x), right = Number(y);
    if (left.has_value() && right.has_value()) {
      if (std::optional<bool> folded = FoldComparison(op, *left, *right))
        return arena_.Constant(*folded);
    }
    const auto *s = std::get_if<std::string>(&x->constant),
               *t = std::get_if<std::string>(&y->constant);
    if (s != nullptr && t != nullptr && (op == "==" || op == "!=")) {
      return arena_.Constant((*s == *t) == (op == "=="));
    }
    StorageSet sources = x->sources;
    AddTo(&sources, y->sources);
    return arena_.Host(sources);
  }
  for (Value side : {a, b}) {
    if (auto* instance = AsInstance(side); instance != nullptr && instance->type != nullptr) {
      std::string symbol;
      Value found = ClassAttribute(instance->type, MethodOf(op), &symbol);
      if (found != nullptr) {
        return Call(BindMethod(found, instance, instance->type),
                    {.positional = {side == a ? b : a}, .line = line});
      }
    }
  }
  if (op == "in" || op == "not in") {
    MeetTensors({a, b}, line);
    if (AsDict(b) != nullptr && AsHost(a) != nullptr && !AsHost(a)->addresses.empty() &&
        phase_ == Phase::kForward) {
      Find(LintRule::kHardCoded, line, "cache by address",
           "results are looked up by the address or identity of a tensor");
    }
    return arena_.Host();
  }
  // No tensor equals a text, so an argument that is compared with one is a text or None.
  if ((op == "==" || op == "!=") && (IsText(a) || IsText(b))) return arena_.Host();
  // Tuples of sizes, functions, None: Python compares them without touching elements.
  if (AsTensor(a) == nullptr && AsTensor(b) == nullptr && !HoldsTensor(a) && !HoldsTensor(b)) {
    return arena_.Host();
  }
  return Elementwise(std::string(op), {a, b}, line);
}

}  // namespace tritonrl::lint
