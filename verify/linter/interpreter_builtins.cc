// Python's own functions and the standard library.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {

Value Interpreter::MapCall(Value function, const std::vector<Value>& iterables, int line) {
  Args args;
  args.line = line;
  for (Value iterable : iterables) args.positional.push_back(Element(iterable, line));
  ++undecided_;
  Value value = Call(function, args);
  --undecided_;
  return arena_.List({value}, false);
}

Value Interpreter::GetAttrBuiltin(const Args& args) {
  if (args.positional.size() < 2) return arena_.Unknown(SourcesOf(args));
  Value object = args.positional[0];
  const std::string* name = ConstantString(args.positional[1]);
  if (name != nullptr) {
    if (IsForbiddenAttribute(*name))
      Forbid(args.line, *name, "reaches into Python's own machinery");
    Value value = GetAttribute(object, *name, args.line);
    if (args.positional.size() > 2 && AsInstance(object) != nullptr)
      value = arena_.Join(value, args.positional[2]);
    return value;
  }
  if (auto* instance = AsInstance(object)) {
    Value joined = arena_.JoinAll(AttributeValues(instance));
    return joined == nullptr ? arena_.Unknown() : joined;
  }
  if (auto* symbol = AsSymbol(object);
      symbol != nullptr && absl::StartsWith(symbol->name, "triton.language")) {
    return arena_.Host();  // a dtype by name
  }
  if (AsHost(object) != nullptr) return arena_.Host();
  Forbid(args.line, "getattr", "looks an attribute up by a name that is made at run time");
  return arena_.Unknown(SourcesOf(args));
}

void Interpreter::SetAttrBuiltin(const Args& args) {
  if (args.positional.size() < 3) return;
  Value object = args.positional[0];
  const std::string* name = ConstantString(args.positional[1]);
  if (name != nullptr) {
    StoreAttribute(object, *name, args.positional[2], args.line);
  } else if (auto* instance = AsInstance(object)) {
    Value& slot = instance->attributes["*"];
    slot = arena_.Join(slot, args.positional[2]);
  } else {
    Forbid(args.line, "setattr", "sets an attribute by a name that is made at run time");
  }
}

Value Interpreter::CallBuiltin(absl::string_view name, const Args& args) {
  const std::vector<Value> all = args.All();
  Value first = args.Get(0, "");
  if (name == "getattr") return GetAttrBuiltin(args);
  if (name == "setattr") {
    SetAttrBuiltin(args);
    return None();
  }
  if (name == "super") return Super(args);
  if (auto* function = AsFunction(first)) {
    using Binding = FunctionObject::Binding;
    if (name == "staticmethod") function->binding = Binding::kStatic;
    if (name == "classmethod") function->binding = Binding::kClass;
    if (name == "property") function->binding = Binding::kProperty;
    if (name == "staticmethod" || name == "classmethod" || name == "property") return function;
  }
  if (name == "staticmethod" || name == "classmethod") return first == nullptr ? None() : first;
  if (name == "len") {
    if (auto* list = AsList(first); list != nullptr && list->exact) {
      return arena_.Constant(static_cast<int64_t>(list->items.size()));
    }
    return arena_.Int();
  }
  if (name == "range") {
    const std::optional<int64_t> count = ConstantInt(first);
    std::vector<Value> items;
    if (count.has_value() && all.size() == 1 && *count >= 0 && *count <= 8) {
      for (int64_t i = 0; i < *count; ++i) items.push_back(arena_.Constant(i));
      return arena_.List(items);
    }
    return arena_.List({arena_.Int()}, false);
  }
  if (name == "isinstance") {
    const auto* type = AsSymbol(args.Get(1, ""));
    if (AsTensor(first) != nullptr && type != nullptr && type->name == "torch.Tensor")
      return arena_.Constant(true);
    return arena_.Host();
  }
  if (name == "type") {
    if (auto* instance = AsInstance(first); instance != nullptr && instance->type != nullptr)
      return instance->type;
    if (all.size() >= 3) {
      Forbid(args.line, "type", "makes a class at run time");
      return arena_.Unknown();
    }
    return arena_.Host();
  }
  if (name == "hasattr" || name == "callable" || name == "issubclass" || name == "print" ||
      name == "repr" || name == "hash" || name == "dir" || name == "slice") {
    return arena_.Host();
  }
  if (name == "id") {
    auto* address = arena_.New<HostObject>();
    address->is_int = true;
    address->addresses = SourcesOf(args);
    return address;
  }
  if (name == "list" || name == "tuple" || name == "set" || name == "frozenset" ||
      name == "reversed" || name == "sorted" || name == "iter") {
    if (first == nullptr) return arena_.List({});
    if (AsInstance(first) != nullptr && name == "iter") return first;
    std::vector<Value> items;
    bool exact = true;
    AddItems(first, &items, &exact);
    if (Value key = args.Get(-1, "key"); key != nullptr && key != args.rest)
      MapCall(key, {first}, args.line);
    const bool same_order = name == "list" || name == "tuple" || name == "iter";
    return arena_.List(items, exact && same_order);
  }
  if (name == "next") {
    Value element = AsInstance(first) != nullptr
                        ? Call(GetAttribute(first, "__next__", args.line), {.line = args.line})
                        : Element(first == nullptr ? arena_.Unknown() : first, args.line);
    return all.size() > 1 ? arena_.Join(element, all[1]) : element;
  }
  if (name == "enumerate" && first != nullptr) {
    std::vector<Value> items;
    bool exact = true;
    AddItems(first, &items, &exact);
    int64_t index = 0;
    for (Value& item : items) {
      item = arena_.List({exact ? arena_.Constant(index++) : arena_.Int(), item});
    }
    return arena_.List(items, exact);
  }
  if (name == "zip") {
    std::vector<std::vector<Value>> columns;
    bool exact = true;
    for (Value value : all) {
      columns.emplace_back();
      AddItems(value, &columns.back(), &exact);
    }
    size_t length = columns.empty() ? 0 : columns[0].size();
    for (const auto& column : columns) length = std::min(length, column.size());
    if (!exact) length = std::min<size_t>(length, 1);
    std::vector<Value> rows;
    for (size_t i = 0; i < length; ++i) {
      std::vector<Value> row;
      for (const auto& column : columns) row.push_back(exact ? column[i] : arena_.JoinAll(column));
      rows.push_back(arena_.List(row));
    }
    return arena_.List(rows, exact);
  }
  if ((name == "map" || name == "filter") && all.size() >= 2) {
    Value mapped = IsNone(first) ? all[1] : MapCall(first, {all.begin() + 1, all.end()}, args.line);
    return name == "map" ? mapped : arena_.List({Element(all[1], args.line)}, false);
  }
  if (name == "dict") {
    auto* dict = arena_.New<DictObject>();
    for (const auto& [key, value] : args.keyword) dict->items.emplace_back("s:" + key, value);
    if (auto* other = AsDict(first)) {
      dict->items.insert(dict->items.begin(), other->items.begin(), other->items.end());
      dict->other = other->other;
    } else if (first != nullptr) {
      Value pair = Element(first, args.line);
      dict->other = AsList(pair) != nullptr ? arena_.JoinAll(AsList(pair)->items) : pair;
    }
    return dict;
  }
  if (name == "sum" || name == "max" || name == "min" || name == "abs" || name == "pow" ||
      name == "round" || name == "divmod" || name == "any" || name == "all" || name == "sum") {
    std::vector<Value> values;
    bool all_int = true;
    for (Value value : all) {
      std::vector<Value> items{value};
      bool exact = true;
      if (AsList(value) != nullptr) {
        items.clear();
        AddItems(value, &items, &exact);
      }
      for (Value item : items) {
        values.push_back(item);
        const auto* host = AsHost(item);
        all_int = all_int && host != nullptr && host->is_int;
        const bool reads_elements = host == nullptr && HoldsTensor(item);
        if (host != nullptr && !host->sources.empty() && items.size() > 1 &&
            phase_ == Phase::kForward) {
          Find(LintRule::kPythonCompute, args.line, std::string(name),
               "Python computes on elements of tensors");
        }
        if (reads_elements && AsTensor(value) != nullptr &&
            (name == "sum" || name == "any" || name == "all")) {
          return Compute(std::string(name), args.line, SourcesOf(args));
        }
      }
    }
    Value result = Elementwise(std::string(name), values, args.line);
    if (AsHost(result) != nullptr && all_int) return arena_.Int(SourcesOf(args));
    return result;
  }
  if (name == "int" || name == "float" || name == "bool" || name == "complex") {
    if (auto* tensor = AsTensor(first);
        tensor != nullptr && !tensor->IsSmall() && tensor->shape.has_value()) {
      Compute(std::string(name), args.line, tensor->storages);
    }
    if (name == "int") {
      if (std::optional<int64_t> value = ConstantInt(first)) return arena_.Constant(*value);
      return arena_.Int(SourcesOf(args));
    }
    return arena_.Host(SourcesOf(args));
  }
  if (name == "object") return arena_.Host();
  // str, format, chr, exceptions and the like hold their arguments but compute nothing on them.
  StorageSet sources = SourcesOf(args);
  CallCallbacks(args);
  return HoldsTensor(arena_.List(all)) ? arena_.Unknown(sources) : arena_.Host(sources);
}

Value Interpreter::CallStandardLibrary(const std::string& name, const Args& args) {
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
    Value once = Call(first, {.positional = {start, element}, .line = args.line});
    return arena_.Join(
        once, Call(first, {.positional = {arena_.Join(start, once), element}, .line = args.line}));
  }
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
    if (direct && name != "functools.wraps") return first;
    return arena_.Symbol(absl::StrCat(name, "()"));
  }
  if (absl::StartsWith(name, "operator.")) {
    const std::string op = name.substr(9);
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
    if (op == "itemgetter") return arena_.Symbol("builtins.next");
    return Elementwise(name, args.All(), args.line);
  }
  if (absl::StartsWith(name, "math.")) {
    Value value = Elementwise(name, args.All(), args.line);
    const bool is_int =
        name == "math.ceil" || name == "math.floor" || name == "math.prod" || name == "math.gcd";
    return AsHost(value) != nullptr && is_int ? arena_.Int(SourcesOf(args)) : value;
  }
  if (absl::StartsWith(name, "copy.") || name == "typing.cast") {
    Value value = args.Get(name == "typing.cast" ? 1 : 0, "");
    if (auto* tensor = AsTensor(value)) return NewTensor(tensor->storages, tensor->shape);
    return value == nullptr ? None() : value;
  }
  if (name == "types.MethodType" && args.positional.size() >= 2) {
    auto* bound = arena_.New<BoundObject>();
    bound->function = first;
    bound->self = args.positional[1];
    return bound;
  }
  if (name == "types.SimpleNamespace") {
    auto* instance = arena_.New<InstanceObject>();
    for (const auto& [key, value] : args.keyword) instance->attributes[key] = value;
    return instance;
  }
  if (absl::StartsWith(name, "itertools.") || absl::StartsWith(name, "collections.")) {
    std::vector<Value> items;
    bool exact = true;
    for (Value value : args.All()) {
      AsList(value) != nullptr ? AddItems(value, &items, &exact) : items.push_back(value);
    }
    CallCallbacks(args);
    if (absl::StrContains(name, "Dict") || absl::StrContains(name, "defaultdict")) {
      return arena_.New<DictObject>();
    }
    const bool same = name == "itertools.chain" || name == "collections.deque";
    if (!same) items.push_back(arena_.List(items, false));
    return arena_.List(items, false);
  }
  CallCallbacks(args);
  return HoldsTensor(arena_.List(args.All())) ? arena_.Unknown(SourcesOf(args))
                                              : arena_.Host(SourcesOf(args));
}

Value Interpreter::CallListMethod(ListObject* list, absl::string_view name, const Args& args) {
  Value first = args.Get(0, "");
  if ((name == "append" || name == "add" || name == "appendleft") && first != nullptr) {
    list->items.push_back(first);
    if (undecided_ > 0) list->exact = false;
    return None();
  }
  if (name == "extend" || name == "update" || name == "extendleft") {
    if (first != nullptr) AddItems(first, &list->items, &list->exact);
    return None();
  }
  if (name == "insert" && args.positional.size() >= 2) {
    list->items.push_back(args.positional[1]);
    list->exact = false;
    return None();
  }
  if (name == "pop" || name == "popleft" || name == "__getitem__" || name == "__next__") {
    Value joined = arena_.JoinAll(list->items);
    if (name == "pop" && args.positional.empty() && list->exact && !list->items.empty() &&
        undecided_ == 0) {
      joined = list->items.back();
      list->items.pop_back();
    } else {
      list->exact = false;
    }
    return joined == nullptr ? arena_.Unknown() : joined;
  }
  if (name == "numel" || name == "index" || name == "count" || name == "__len__")
    return arena_.Int();
  if (name == "copy" || name == "__iter__") return arena_.List(list->items, list->exact);
  if (name == "sort" || name == "reverse" || name == "clear" || name == "remove") {
    list->exact = false;
    if (name == "clear" && undecided_ == 0) {
      list->items.clear();
      list->exact = true;
    }
    return None();
  }
  if (name == "__add__" && first != nullptr) return Binary("+", list, first, args.line);
  // Methods of objects that are modelled as sequences: send, throw, as a context manager, ...
  return arena_.Unknown(Reachable(list));
}

Value Interpreter::CallDictMethod(DictObject* dict, absl::string_view name, const Args& args) {
  Value first = args.Get(0, "");
  if (name == "get" || name == "pop" || name == "setdefault" || name == "__getitem__") {
    if (name == "setdefault" && args.positional.size() > 1)
      StoreItem(dict, first, args.positional[1], args.line);
    if (first != nullptr && AsHost(first) != nullptr && !AsHost(first)->addresses.empty()) {
      Compare("in", first, dict, args.line);
    }
    Value item = GetItem(dict, first == nullptr ? arena_.Host() : first, nullptr, args.line);
    Value fallback = args.positional.size() > 1 ? args.positional[1] : None();
    return arena_.Join(item, fallback);
  }
  std::vector<Value> values;
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict->items) {
    values.push_back(value);
    Value text = absl::StartsWith(key, "s:") ? arena_.Constant(key.substr(2)) : arena_.Int();
    pairs.push_back(arena_.List({text, value}));
  }
  const bool exact = dict->other == nullptr;
  if (!exact) {
    values.push_back(dict->other);
    pairs.push_back(arena_.List({arena_.Host(), dict->other}));
  }
  if (name == "values") return arena_.List(values, exact);
  if (name == "items") return arena_.List(pairs, exact);
  if (name == "keys") return arena_.List({arena_.Host()}, false);
  if (name == "update") {
    if (auto* other = AsDict(first)) {
      for (const auto& [key, value] : other->items) dict->items.emplace_back(key, value);
      dict->other = arena_.Join(dict->other, other->other);
    }
    for (const auto& [key, value] : args.keyword) dict->items.emplace_back("s:" + key, value);
    return None();
  }
  if (name == "copy") {
    auto* copy = arena_.New<DictObject>();
    copy->items = dict->items;
    copy->other = dict->other;
    return copy;
  }
  return arena_.Unknown(Reachable(dict));
}

}  // namespace tritonrl::lint
