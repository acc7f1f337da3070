// Python's own functions and the standard library.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

// A list of pairs, each of known length: what dict(...) takes.
bool ArePairs(Value value) {
  const auto* list = AsList(value);
  if (list == nullptr || !list->exact) return false;
  for (Value item : list->items) {
    const auto* pair = AsList(item);
    if (pair == nullptr || !pair->exact || pair->items.size() != 2) return false;
  }
  return true;
}

}  // namespace

Value Interpreter::MapCall(Value function, const std::vector<Value>& iterables, int line) {
  Args args;
  args.line = line;
  for (Value iterable : iterables) args.positional.push_back(Element(iterable, line));
  // It runs when its results are asked for, on what the sequences hold then.
  if (phase_ != Phase::kForward && IsCallable(function)) {
    if (hidden_.size() >= kMostHidden) TooHidden(line);
    if (hidden_.size() < kMostHidden)
      hidden_.push_back({.value = function, .line = line, .iterables = iterables});
  }
  ++undecided_;
  ++loops_;
  Value value = Call(function, args);
  --loops_;
  --undecided_;
  return Iterator({value}, false, iterables);
}

namespace {

// "_Class__name", what Python makes of "__name" inside of Class.
bool LooksMangled(absl::string_view name) {
  return name.size() > 4 && name[0] == '_' && name[1] != '_' && absl::StrContains(name, "__") &&
         !absl::EndsWith(name, "__");
}

}  // namespace

Value Interpreter::GetAttrBuiltin(const Args& args) {
  if (args.positional.size() < 2) return arena_.Unknown(SourcesOf(args));
  Value object = args.positional[0];
  const std::string* name = ConstantString(args.positional[1]);
  if (name != nullptr) {
    if (Is(kForbiddenAttribute, *name))
      Forbid(args.line, *name, "reaches into Python's own machinery");
    if (LooksMangled(*name))
      Forbid(args.line, *name, "is what Python makes of another name in a class");
    Value value = GetAttribute(object, *name, args.line);
    if (args.positional.size() > 2 && AsInstance(object) != nullptr)
      value = arena_.Join(value, args.positional[2]);
    return value;
  }
  if (auto* instance = AsInstance(object)) {
    const std::string start = UnknownName(args.positional[1]).substr(1);
    Value joined = nullptr;
    for (const auto& [attribute, value] : instance->attributes) {
      absl::string_view made = attribute;
      const bool is_made = absl::ConsumePrefix(&made, "*");
      if (absl::StartsWith(made, start) || (is_made && absl::StartsWith(start, made)))
        joined = arena_.Join(joined, value);
    }
    if (instance->type != nullptr) {  // or a method or property of its class
      for (Value base : std::vector<Value>(SearchOrder(instance->type))) {
        auto* type = AsClass(base);
        if (type == nullptr) continue;
        budget_.Spend(2 * type->body->variables.size());
        const auto variables = type->body->variables;
        for (const auto& [number, value] : variables) {
          const std::string& member = ast_->NameOf(number);
          if (absl::StartsWith(member, "__") || member == "forward" ||
              !absl::StartsWith(member, start))
            continue;
          joined = arena_.Join(joined, BindMethod(value, instance, type));
        }
      }
    }
    return joined == nullptr ? arena_.Unknown() : joined;
  }
  if (auto* symbol = AsSymbol(object);
      symbol != nullptr && absl::StartsWith(symbol->name, "triton.language")) {
    return arena_.Host();  // a dtype by name
  }
  if (AsHost(object) != nullptr) return arena_.Host();
  // A parameter of a library's module, as of an LSTM's layers; what it is called for computes.
  if (AsModule(object) != nullptr) return InputTensor();
  Forbid(args.line, "getattr", "looks an attribute up by a name that is made at run time");
  return arena_.Unknown(SourcesOf(args));
}

void Interpreter::SetAttrBuiltin(const Args& args) {
  if (args.positional.size() < 3) return;
  Value object = args.positional[0];
  const std::string* name = ConstantString(args.positional[1]);
  if (name != nullptr && (Is(kForbiddenAttribute, *name) || Is(kForbiddenMethod, *name)))
    Forbid(args.line, *name, "reaches into Python's own machinery");
  if (name != nullptr && LooksMangled(*name))
    Forbid(args.line, *name, "is what Python makes of another name in a class");
  if (name != nullptr) {
    StoreAttribute(object, *name, args.positional[2], args.line);
  } else if (auto* instance = AsInstance(object)) {
    Value& slot = instance->attributes[UnknownName(args.positional[1])];
    slot = arena_.Join(slot, args.positional[2]);
  } else {
    Forbid(args.line, "setattr", "sets an attribute by a name that is made at run time");
  }
}

Value Interpreter::CallBuiltin(absl::string_view name, const Args& args) {
  if (absl::StartsWith(name, "list.") || absl::StartsWith(name, "dict.")) {
    Value self = args.Get(0, "self");
    Args rest = args;
    if (!rest.positional.empty()) rest.positional.erase(rest.positional.begin());
    if (AsList(self) != nullptr) return CallListMethod(AsList(self), name.substr(5), rest);
    if (AsDict(self) != nullptr) return CallDictMethod(AsDict(self), name.substr(5), rest);
  }
  for (absl::string_view compares : {"sorted", "min", "max", "sum", "set", "frozenset", "dict"}) {
    if (name == compares) MeetTensors(args.All(), args.line);
  }
  for (auto group : {&Interpreter::ObjectBuiltin, &Interpreter::SequenceBuiltin,
                     &Interpreter::IteratorBuiltin, &Interpreter::NumberBuiltin}) {
    if (Value value = (this->*group)(name, args)) return value;
  }
  // str, format, chr, exceptions and the like hold their arguments but compute nothing on them.
  CallCallbacks(args);
  StorageSet sources = SourcesOf(args);
  return HoldsTensor(arena_.List(args.All())) ? arena_.Unknown(sources) : arena_.Host(sources);
}

// Functions about objects and their attributes; null when `name` is none of them.
Value Interpreter::ObjectBuiltin(absl::string_view name, const Args& args) {
  Value first = args.Get(0, "");
  if (name == "getattr") return GetAttrBuiltin(args);
  if (name == "setattr") {
    SetAttrBuiltin(args);
    return None();
  }
  if (name == "super") return Super(args);
  if (name == "staticmethod" || name == "classmethod" || name == "property") {
    using Binding = FunctionObject::Binding;
    if (auto* function = AsFunction(first)) {
      if (name == "property") {
        function->setter = AsFunction(args.Get(1, "fset"));
        function->deleter = AsFunction(args.Get(2, "fdel"));
      }
      function->binding = name == "property"       ? Binding::kProperty
                          : name == "staticmethod" ? Binding::kStatic
                                                   : Binding::kClass;
    }
    return first == nullptr ? None() : first;
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
    if (AsTensor(first) != nullptr) return arena_.Symbol("torch.Tensor");
    if (AsModule(first) != nullptr) return arena_.Symbol(AsModule(first)->name);
    if (args.All().size() < 3) return arena_.Host();
    Forbid(args.line, "type", "makes a class at run time");
    return arena_.Unknown();
  }
  if (name == "id") {
    auto* address = arena_.New<HostObject>();
    address->is_int = true;
    address->addresses = SourcesOf(args);
    return address;
  }
  for (absl::string_view harmless :
       {"hasattr", "callable", "issubclass", "print", "repr", "hash", "dir", "slice", "object"}) {
    if (name != harmless) continue;
    if (name == "hasattr" && ConstantString(args.Get(1, "")) != nullptr && first != nullptr)
      GetAttribute(first, *ConstantString(args.Get(1, "")), args.line);  // runs a property
    if (name == "print" || name == "repr" || name == "hasattr" || name == "dir" || name == "hash")
      Hide(arena_.List(args.All()), args.line);
    if (auto* tensor = AsTensor(first);
        name == "repr" && tensor != nullptr && !tensor->IsSmall() && phase_ == Phase::kForward) {
      Find(LintRule::kPythonCompute, args.line, "repr",
           "moves tensor elements out of torch to compute on them");
    }
    if (name == "repr") return arena_.Host(SourcesOf(args));
    return arena_.Host();
  }
  return nullptr;
}

// Functions that make sequences and dictionaries; null when `name` is none of them.
Value Interpreter::SequenceBuiltin(absl::string_view name, const Args& args) {
  Value first = args.Get(0, "");
  std::vector<Value> items;
  bool exact = true;
  if (name == "len") {
    auto* list = AsList(first);
    if (first != nullptr && CountsCalls(first)) return CountOfCalls();
    if (list == nullptr || !list->exact || list->use != ListObject::Use::kList)
      return arena_.Size();
    return arena_.Constant(static_cast<int64_t>(list->items.size()));
  }
  if (name == "range") {
    const std::optional<int64_t> count = ConstantInt(first);
    if (!count.has_value() || args.All().size() != 1 || *count < 0 || *count > 8) {
      return arena_.List({Counts(SourcesOf(args)) ? CountOfCalls() : arena_.Int()}, false);
    }
    for (int64_t i = 0; i < *count; ++i) items.push_back(arena_.Constant(i));
    return arena_.List(items);
  }
  if (name == "list" || name == "tuple" || name == "set" || name == "frozenset" ||
      name == "reversed" || name == "sorted") {
    if (first == nullptr) return arena_.List({});
    if (auto* tensor = AsTensor(first); name == "sorted" && tensor != nullptr && !tensor->IsSmall())
      return Compute("sorted", args.line, SourcesOf(args));
    AddItems(first, &items, &exact);
    if (Value key = args.Get(-1, "key"); key != nullptr && key != args.rest)
      MapCall(key, {first}, args.line);
    if (name == "reversed") return Iterator(std::move(items), false, {first});
    return arena_.List(items, exact && (name == "list" || name == "tuple"));
  }
  if (name == "dict") {
    auto* dict = arena_.New<DictObject>();
    for (const auto& [key, value] : args.keyword) dict->items.emplace_back("s:" + key, value);
    if (auto* other = AsDict(first)) {
      budget_.Spend(4 * other->items.size());
      dict->items.insert(dict->items.begin(), other->items.begin(), other->items.end());
      dict->other = other->other;
    } else if (first != nullptr && ArePairs(first)) {
      for (Value pair : AsList(first)->items)
        StoreItem(dict, AsList(pair)->items[0], AsList(pair)->items[1], args.line);
    } else if (first != nullptr) {
      Value pair = Element(first, args.line);
      dict->other = AsList(pair) != nullptr ? arena_.JoinAll(AsList(pair)->items) : pair;
    }
    return dict;
  }
  return nullptr;
}

// Functions that walk over sequences; null when `name` is none of them.
Value Interpreter::IteratorBuiltin(absl::string_view name, const Args& args) {
  const std::vector<Value> all = args.All();
  Value first = args.Get(0, "");
  bool exact = true;
  if (name == "next" && first != nullptr) {
    Value element = AsInstance(first) != nullptr
                        ? Call(GetAttribute(first, "__next__", args.line), {.line = args.line})
                        : Element(first, args.line);
    if (AsList(first) != nullptr && AsList(first)->lasts && phase_ == Phase::kForward &&
        AsHost(element) != nullptr)
      element = CountOfCalls();
    return all.size() > 1 ? arena_.Join(element, all[1]) : element;
  }
  if (name == "iter" && first != nullptr) {
    if (args.positional.size() == 2)
      return arena_.List({Call(first, {.line = args.line})}, false);  // called until it gives that
    if (AsInstance(first) != nullptr) return first;
    if (AsList(first) != nullptr && AsList(first)->use == ListObject::Use::kIterator) return first;
    std::vector<Value> items;
    AddItems(first, &items, &exact);
    Value made = Iterator(std::move(items), exact, {first});
    AsList(made)->lasts = phase_ != Phase::kForward;
    return made;
  }
  if (name == "enumerate" && first != nullptr) {
    std::vector<Value> items;
    AddItems(first, &items, &exact);
    Value start = args.Get(1, "start");
    std::optional<int64_t> index =
        start == nullptr ? std::optional<int64_t>(0) : ConstantInt(start);
    if (!exact) index.reset();
    for (Value& item : items) {
      item = arena_.List({index.has_value() ? arena_.Constant(*index) : arena_.Int(), item});
      if (index.has_value()) ++*index;
    }
    return Iterator(std::move(items), exact, {first});
  }
  if (name == "zip") {
    std::vector<std::vector<Value>> columns;
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
      rows.push_back(arena_.List(row, args.rest == nullptr));
    }
    return Iterator(std::move(rows), exact, all);
  }
  if (name == "map" && all.size() >= 2)
    return MapCall(first, {all.begin() + 1, all.end()}, args.line);
  if (name == "filter" && all.size() >= 2) {
    if (!IsNone(first)) MapCall(first, {all[1]}, args.line);
    return arena_.List({Element(all[1], args.line)}, false);
  }
  return nullptr;
}

// Functions on numbers, which are computations when they get tensors; null when `name` is none of
// them.
Value Interpreter::NumberBuiltin(absl::string_view name, const Args& args) {
  Value first = args.Get(0, "");
  if (name == "int" || name == "float" || name == "bool" || name == "complex") {
    auto* tensor = AsTensor(first);
    if (tensor != nullptr && !tensor->IsSmall() && tensor->shape.has_value()) {
      Compute(std::string(name), args.line, tensor->storages);
    }
    if (AsInstance(first) != nullptr) Hide(first, args.line);
    if (name != "int") return arena_.Host(SourcesOf(args));
    if (std::optional<int64_t> value = ConstantInt(first)) return arena_.Constant(*value);
    return arena_.Int(SourcesOf(args));
  }
  const bool reduces =
      name == "sum" || name == "max" || name == "min" || name == "any" || name == "all";
  if (!reduces && name != "abs" && name != "pow" && name != "round" && name != "divmod")
    return nullptr;
  CallCallbacks(args);
  std::vector<Value> values;
  bool all_int = true;
  for (Value value : args.All()) {
    if (auto* tensor = AsTensor(value); reduces && tensor != nullptr && !tensor->IsSmall())
      return Compute(std::string(name), args.line, SourcesOf(args));
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
      const bool read_back = host != nullptr && !host->sources.empty();
      if (read_back && (items.size() > 1 || !exact) && phase_ == Phase::kForward) {
        Find(LintRule::kPythonCompute, args.line, std::string(name),
             "Python computes on elements of tensors");
      }
    }
  }
  Value result = Elementwise(std::string(name), values, args.line);
  return AsHost(result) != nullptr && all_int ? arena_.Int(SourcesOf(args)) : result;
}

}  // namespace tritonrl::lint
