// Python's standard library.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {

// functools and decorators of other modules; null when `name` is none that matters.
Value Interpreter::FunctoolsModule(const std::string& name, const Args& args) {
  Value first = args.Get(0, "");
  if (name == "functools.partial") {
    auto* partial = arena_.New<PartialObject>();
    if (args.positional.empty()) return arena_.Unknown();
    partial->function = args.positional[0];
    partial->positional.assign(args.positional.begin() + 1, args.positional.end());
    partial->keyword = args.keyword;
    return partial;
  }
  if (name == "functools.reduce" && args.positional.size() >= 2) {
    Value element = Element(args.positional[1], args.line);
    Value start = args.positional.size() > 2 ? args.positional[2] : element;
    ++loops_;
    Value once = Call(first, {.positional = {start, element}, .line = args.line});
    Value again =
        Call(first, {.positional = {arena_.Join(start, once), element}, .line = args.line});
    --loops_;
    return arena_.Join(once, again);
  }
  if (name == "functools.partialmethod") return first == nullptr ? arena_.Unknown() : first;
  if (name == "functools.update_wrapper" && first != nullptr && AsFunction(first) == nullptr)
    Forbid(args.line, name, "copies attributes from one object to another");
  const bool decorates =
      name == "functools.wraps" || name == "functools.lru_cache" || name == "functools.cache" ||
      name == "functools.update_wrapper" || name == "contextlib.contextmanager" ||
      name == "functools.cached_property" || absl::StartsWith(name, "dataclasses.dataclass") ||
      name == "abc.abstractmethod" || name == "functools.total_ordering";
  if (decorates) {
    const bool direct = AsFunction(first) != nullptr || AsClass(first) != nullptr;
    if (name == "functools.cached_property" && AsFunction(first) != nullptr) {
      AsFunction(first)->binding = FunctionObject::Binding::kProperty;
    }
    if (AsFunction(first) != nullptr && name == "functools.cache") AsFunction(first)->cached = true;
    if (AsFunction(first) != nullptr && name == "functools.lru_cache")
      AsFunction(first)->cached = true;
    if (direct && name != "functools.wraps") return first;
    return arena_.Symbol(absl::StrCat(name, "()"));
  }
  return nullptr;
}

// Functions of dataclasses on their instances; null when `name` is none that matters.
Value Interpreter::DataclassesModule(const std::string& name, const Args& args) {
  if (name == "dataclasses.field") {
    if (Value value = args.Get(-1, "default")) return value;
    Value factory = args.Get(-1, "default_factory");
    if (factory == nullptr) return nullptr;
    Hide(factory, args.line);  // each object that is made calls it
    return Call(factory, {.line = args.line});
  }
  auto* instance = AsInstance(args.Get(0, "obj"));
  if (instance == nullptr || instance->type == nullptr || args.rest != nullptr) return nullptr;
  const std::vector<std::string> fields = FieldsOf(instance->type);
  const bool replaces = name == "dataclasses.replace";
  if (fields.empty() || args.positional.size() != 1) return nullptr;
  Args made{.keyword = replaces ? args.keyword : decltype(args.keyword)(), .line = args.line};
  for (const std::string& field : fields) {
    if (made.Get(-1, field) == nullptr)
      made.keyword.emplace_back(field, GetAttribute(instance, field, args.line));
  }
  if (replaces) return Instantiate(instance->type, made);
  if (Value factory = args.Get(-1, "dict_factory")) {
    std::vector<Value> pairs;
    for (const auto& [field, value] : made.keyword)
      pairs.push_back(arena_.List({arena_.Constant(field), value}));
    return Call(factory, {.positional = {arena_.List(pairs)}, .line = args.line});
  }
  if (!args.keyword.empty()) return nullptr;
  if (name == "dataclasses.astuple") return arena_.List(made.All());
  if (name != "dataclasses.asdict") return nullptr;
  auto* dict = arena_.New<DictObject>();
  for (const auto& [field, value] : made.keyword) dict->items.emplace_back("s:" + field, value);
  return dict;
}

Value Interpreter::OperatorModule(absl::string_view op, const Args& args) {
  Value first = args.Get(0, "");
  constexpr std::pair<absl::string_view, absl::string_view> kOperators[] = {
      {"add", "+"},       {"sub", "-"},  {"mul", "*"},      {"truediv", "/"},
      {"floordiv", "//"}, {"mod", "%"},  {"matmul", "@"},   {"pow", "**"},
      {"iadd", "+"},      {"imul", "*"}, {"isub", "-"},     {"and_", "&"},
      {"or_", "|"},       {"xor", "^"},  {"itruediv", "/"}, {"imatmul", "@"}};
  for (const auto& [word, symbol] : kOperators) {
    if (op == word && args.positional.size() >= 2) {
      return Binary(symbol, args.positional[0], args.positional[1], args.line);
    }
  }
  if ((op == "neg" || op == "abs" || op == "invert" || op == "pos") && first != nullptr) {
    return Unary("-", first, args.line);
  }
  if (op == "getitem" && args.positional.size() >= 2)
    return GetItem(first, args.positional[1], nullptr, args.line);
  if (AsList(first) != nullptr || AsDict(first) != nullptr) {
    Loosen(first, args);  // setitem, iadd, ...
    return first;
  }
  if (op == "itemgetter") return arena_.Symbol("builtins.next");
  return Elementwise(absl::StrCat("operator.", op), args.All(), args.line);
}

Value Interpreter::MakeNamedTuple(const Args& args) {
  auto* type = arena_.New<ClassObject>();
  type->name = "namedtuple";
  type->body = arena_.NewScope(module_scope_);
  Value fields = args.Get(1, "field_names");
  if (const std::string* text = ConstantString(fields)) {
    for (absl::string_view field :
         absl::StrSplit(*text, absl::ByAnyChar(", "), absl::SkipEmpty())) {
      type->fields.emplace_back(field);
    }
  } else if (auto* list = AsList(fields)) {
    for (Value item : list->items) {
      const std::string* field = ConstantString(item);
      type->fields.push_back(field == nullptr ? "" : *field);
    }
  }
  return type;
}

Value Interpreter::CollectionsModule(const std::string& name, const Args& args) {
  Value first = args.Get(0, "");
  const auto* torch = AsSymbol(first);  // starmap(torch.mul, pairs), accumulate(x, torch.add)
  if (torch == nullptr) torch = AsSymbol(args.Get(1, "func"));
  if (torch != nullptr && absl::StartsWith(torch->name, "torch.") && AnyTensor(args))
    return arena_.List(
        {CallSymbol(torch->name, {.rest = arena_.Guess(SourcesOf(args)), .line = args.line})},
        false);
  std::vector<Value> items;
  bool exact = true;
  for (Value value : args.All()) {
    AsList(value) != nullptr ? AddItems(value, &items, &exact) : items.push_back(value);
  }
  CallCallbacks(args);
  if (name == "collections.defaultdict") {
    Args rest = args;
    if (!rest.positional.empty()) rest.positional.erase(rest.positional.begin());
    Value dict = SequenceBuiltin("dict", rest);
    if (first != nullptr && !IsNone(first))
      AsDict(dict)->other = arena_.Join(AsDict(dict)->other, Call(first, {.line = args.line}));
    return dict;
  }
  if (absl::EndsWith(name, "Dict")) return SequenceBuiltin("dict", args);
  if (absl::EndsWith(name, "ChainMap") || absl::EndsWith(name, "Counter")) {
    auto* dict = arena_.New<DictObject>();
    // A ChainMap looks into its dictionaries when it is asked, a Counter adds.
    dict->other = absl::EndsWith(name, "Counter") ? arena_.Int() : arena_.Unknown(SourcesOf(args));
    for (Value value : args.All()) {
      auto* other = AsDict(value);
      if (other == nullptr) continue;
      budget_.Spend(4 * other->items.size());
      dict->items.insert(dict->items.end(), other->items.begin(), other->items.end());
      dict->other = arena_.Join(dict->other, other->other);
    }
    return dict;
  }
  const bool same = name == "itertools.chain" || name == "collections.deque";
  if (!same) items.push_back(arena_.List(items, false));
  return arena_.List(items, false);
}

Value Interpreter::CallStandardLibrary(const std::string& name, const Args& args) {
  Value first = args.Get(0, "");
  if (Value value = FunctoolsModule(name, args)) return value;
  if (absl::StartsWith(name, "dataclasses.")) {
    if (Value value = DataclassesModule(name, args)) return value;
  }
  if (absl::StartsWith(name, "operator."))
    return OperatorModule(absl::string_view(name).substr(9), args);
  if (absl::StartsWith(name, "math.")) {
    Value value = Elementwise(name, args.All(), args.line);
    const bool is_int =
        name == "math.ceil" || name == "math.floor" || name == "math.prod" || name == "math.gcd";
    return AsHost(value) != nullptr && is_int ? arena_.Int(SourcesOf(args)) : value;
  }
  if (absl::StartsWith(name, "copy.") || name == "typing.cast") {
    Value value = args.Get(name == "typing.cast" ? 1 : 0, "");
    if (name == "typing.cast" && AsTensor(value) == nullptr && value != nullptr) return value;
    return value == nullptr ? None() : CopyOf(value, name == "copy.deepcopy");
  }
  if (name == "contextlib.suppress" || name == "warnings.catch_warnings")
    return arena_.Symbol(absl::StrCat(name, "()"));
  if (name == "types.MethodType" && args.positional.size() >= 2) {
    auto* bound = arena_.New<BoundObject>();
    bound->function = first;
    bound->self = args.positional[1];
    return bound;
  }
  if (name == "types.SimpleNamespace") {
    auto* instance = arena_.New<InstanceObject>();
    for (const auto& [key, value] : args.keyword) instance->attributes[key] = value;
    if (args.rest != nullptr) instance->attributes["*"] = args.rest;  // under unknown names
    return instance;
  }
  if (name == "collections.namedtuple") return MakeNamedTuple(args);
  if (name == "itertools.count") {
    Value numbers = arena_.List({arena_.Int(SourcesOf(args))}, false);
    AsList(numbers)->lasts = phase_ != Phase::kForward;
    return numbers;
  }
  if (absl::StartsWith(name, "itertools.") || absl::StartsWith(name, "collections."))
    return CollectionsModule(name, args);
  // Kept for later: by an object's constructor, by atexit, by a logger.
  if (phase_ != Phase::kForward && !absl::StartsWith(name, "types.")) {
    for (Value value : args.All()) Hide(value, args.line);
  }
  CallCallbacks(args);
  return HoldsTensor(arena_.List(args.All())) ? arena_.Unknown(SourcesOf(args))
                                              : arena_.Host(SourcesOf(args));
}

Value Interpreter::CallOtherLibrary(const std::string& name, const Args& args) {
  if (name == "einops.rearrange" || name == "einops.repeat") {  // views and copies
    auto* tensor = AsTensor(args.Get(0, "tensor"));
    if (tensor != nullptr && name == "einops.rearrange") return arena_.Tensor(tensor->storages);
    return NewTensor(SourcesOf(args));
  }
  CallCallbacks(args);
  for (Value value : args.positional) {
    if (AsList(value) != nullptr || AsDict(value) != nullptr) Loosen(value, args);  // shuffle
  }
  for (Value value : args.All()) {
    std::vector<Value> items{value};
    if (auto* list = AsList(value)) items = list->items;
    for (Value item : items) {
      const HostObject* host = AsHost(item);
      if (host == nullptr || host->addresses.empty()) continue;
      Find(LintRule::kPythonCompute, args.line, name,
           absl::StrCat("the address of a tensor goes to '", name, "', which can read its memory"));
    }
  }
  bool tensors = false;
  for (Value value : args.All()) tensors = tensors || HoldsTensor(value);
  const bool numpy = absl::StartsWith(name, "numpy.") || absl::StartsWith(name, "scipy.");
  // An object that holds an address or numbers out of a tensor is as good as the tensor.
  for (Value value : args.All()) {
    tensors = tensors || (numpy && AsHost(value) == nullptr && !Reachable(value).empty());
  }
  if (!tensors) return arena_.Unknown(SourcesOf(args));
  if (numpy && phase_ == Phase::kForward) {
    Find(LintRule::kPythonCompute, args.line, name,
         absl::StrCat(name, " computes outside the Triton kernels"));
    return NewTensor(SourcesOf(args));
  }
  return Compute(name, args.line, SourcesOf(args));
}

}  // namespace tritonrl::lint
