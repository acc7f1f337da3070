// Methods of lists and dictionaries.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {

Value Interpreter::CallListMethod(ListObject* list, absl::string_view name, const Args& args) {
  Value first = args.Get(0, "");
  if (name == "sort" || name == "index" || name == "count" || name == "remove") {
    std::vector<Value> values = args.All();
    values.push_back(list);
    MeetTensors(values, args.line);
  }
  if ((name == "append" || name == "add" || name == "appendleft") && first != nullptr) {
    list->items.push_back(first);
    if (Weak(list) || name == "add") list->exact = false;  // a set may have had it
    return None();
  }
  if (name == "extend" || name == "update" || name == "extendleft") {
    if (first != nullptr) AddItems(first, &list->items, &list->exact);
    if (Weak(list) || name == "update") list->exact = false;
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
        !Weak(list)) {
      joined = list->items.back();
      list->items.pop_back();
    } else {
      list->exact = false;
    }
    return joined == nullptr ? arena_.Unknown() : joined;
  }
  if (name == "numel" || name == "index" || name == "count" || name == "__len__")
    return arena_.Int();
  if (name == "copy") return arena_.List(list->items, list->exact);
  if (name == "__iter__") return IteratorBuiltin("iter", {.positional = {list}, .line = args.line});
  if (name == "sort" || name == "reverse" || name == "clear" || name == "remove") {
    list->exact = false;
    if (Value key = args.Get(-1, "key"); name == "sort" && key != nullptr)
      MapCall(key, {list}, args.line);
    if (name == "clear" && !Weak(list)) {
      list->items.clear();
      list->exact = true;
    }
    return None();
  }
  if (name == "__add__" && first != nullptr) return Binary("+", list, first, args.line);
  if (name == "send" && AnyTensor(args)) Unresolved("send", args.line);
  CallCallbacks(args);
  Loosen(list, args);
  // Methods of objects that are modelled as sequences: send, throw, as a context manager, ...
  return arena_.Unknown(Reachable(list));
}

Value Interpreter::CallDictMethod(DictObject* dict, absl::string_view name, const Args& args) {
  Value first = args.Get(0, "");
  if (name == "get" || name == "pop" || name == "setdefault" || name == "__getitem__") {
    if (name == "setdefault" && args.positional.size() > 1) {
      ++undecided_;  // what is there stays
      StoreItem(dict, first, args.positional[1], args.line);
      --undecided_;
    }
    if (first != nullptr && AsHost(first) != nullptr && !AsHost(first)->addresses.empty()) {
      Compare("in", first, dict, args.line);
    }
    Value fallback = args.positional.size() > 1 ? args.positional[1] : None();
    const std::string key = first == nullptr ? "" : ConstantKey(first);
    const bool may_be_there =
        dict->other != nullptr ||
        std::any_of(dict->items.begin(), dict->items.end(),
                    [&](const auto& item) { return key.empty() || item.first == key; });
    if (!may_be_there) return fallback;
    Value item = GetItem(dict, first == nullptr ? arena_.Host() : first, nullptr, args.line);
    return arena_.Join(item, fallback);
  }
  budget_.Spend(8 * dict->items.size());
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
  if (name == "values") return Iterator(std::move(values), exact, {dict}, /*view=*/true);
  if (name == "items") return Iterator(std::move(pairs), exact, {dict}, /*view=*/true);
  if (name == "keys") return arena_.List({arena_.Host()}, false);
  if (name == "update") {
    if (auto* other = AsDict(first)) {
      const auto more = other->items;  // a copy, as it may be the same one
      budget_.Spend(4 * more.size());
      for (const auto& [key, value] : more) PutItem(dict, key, value);
      dict->other = arena_.Join(dict->other, other->other);
    }
    for (const auto& [key, value] : args.keyword) PutItem(dict, "s:" + key, value);
    return None();
  }
  if (name == "copy") {
    auto* copy = arena_.New<DictObject>();
    copy->items = dict->items;
    copy->other = dict->other;
    return copy;
  }
  CallCallbacks(args);
  Loosen(dict, args);
  return arena_.Unknown(Reachable(dict));
}

void Interpreter::PutItem(DictObject* dict, const std::string& key, Value value) {
  budget_.SpendSearch(1, 2 * dict->items.size());
  for (auto& [existing, item] : dict->items) {
    if (existing != key) continue;
    Put(&item, Weak(dict) ? arena_.Join(item, value) : value);
    return;
  }
  // Where it may be missing its number is not certain: something else may stand in for it.
  if (Weak(dict) && AsHost(value) != nullptr) value = arena_.Join(value, arena_.Host());
  dict->items.emplace_back(key, value);
}

// A method or function that is not followed may have changed the container: it may hold any of the
// arguments anywhere.
void Interpreter::Loosen(Value container, const Args& args) {
  Value given = nullptr;
  for (Value value : args.All()) {
    if (value == container) continue;
    given = arena_.Join(given, value);
    if (auto* list = AsList(value)) given = arena_.Join(given, arena_.JoinAll(list->items));
    if (auto* dict = AsDict(value)) {
      for (const auto& [key, item] : dict->items) given = arena_.Join(given, item);
    }
  }
  if (auto* list = AsList(container)) {
    list->exact = false;
    if (given != nullptr) list->items.push_back(given);
  } else if (auto* dict = AsDict(container); dict != nullptr && given != nullptr) {
    dict->other = arena_.Join(dict->other, given);
    // Known keys may have got another value as well.
    for (auto& [key, item] : dict->items) item = arena_.Join(item, given);
  }
}

}  // namespace tritonrl::lint
