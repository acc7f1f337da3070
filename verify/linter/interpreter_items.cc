// Subscripts and iteration.
#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

// Most elements of "2:6" or ":4"; -1 where it cannot be told.
int64_t SliceLength(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  int64_t first = 0, last = 0;
  if (!ends.first.empty() && !absl::SimpleAtoi(ends.first, &first)) return -1;
  if (!absl::SimpleAtoi(ends.second, &last) || first < 0 || last < first) return -1;
  return last - first;
}

}  // namespace

Value Interpreter::GetItem(Value object, Value index, const Node* index_node, int line) {
  if (auto* any = AsUnion(object)) {
    Value joined = nullptr;
    for (Value option : any->options)
      joined = arena_.Join(joined, GetItem(option, index, index_node, line));
    return joined;
  }
  switch (object->kind) {
    case ObjectKind::kKernel: {
      auto* launcher = arena_.New<LauncherObject>();
      launcher->kernel = AsKernel(object);
      launcher->grid = index;
      return launcher;
    }
    case ObjectKind::kTensor:
      return ItemOfTensor(AsTensor(object), index, index_node, line);
    case ObjectKind::kList:
    case ObjectKind::kDict: {
      Value item = ItemOfContainer(object, index, index_node);
      auto* tensor = AsTensor(item);
      if (tensor == nullptr || !ChosenByElement({index})) return item;
      return arena_.Tensor(tensor->storages, tensor->shape, true);
    }
    case ObjectKind::kHost: {
      auto* host = AsHost(object);
      const bool slice = index_node != nullptr && index_node->kind == Kind::kSlice;
      if (host->is_shape && slice) return object;
      return host->is_shape ? arena_.Size(host->sources) : arena_.Host(host->sources);
    }
    case ObjectKind::kModule:
      if (index_node != nullptr && index_node->kind == Kind::kSlice)
        return arena_.List(AsModule(object)->children, false);
      return ItemOf(AsModule(object)->children, AsModule(object)->exact, index);
    case ObjectKind::kSymbol:
      if (absl::StartsWith(AsSymbol(object)->name, "os.environ")) return arena_.Host();
      return object;  // typing.List[int]
    case ObjectKind::kClass:
      return object;
    case ObjectKind::kInstance:
      if (IsNamedTuple(AsInstance(object))) {
        std::vector<Value> items;
        bool exact = true;
        AddItems(object, &items, &exact);
        const bool slice = index_node != nullptr && index_node->kind == Kind::kSlice;
        return slice ? arena_.List(items, false) : ItemOf(items, exact, index);
      }
      return Call(GetAttribute(object, "__getitem__", line), {.positional = {index}, .line = line});
    default:
      return arena_.UnknownLike(object);
  }
}

Value Interpreter::ItemOfContainer(Value container, Value index, const Node* index_node) {
  if (CountsCalls(index) && phase_ == Phase::kForward && AsList(container) != nullptr) {
    for (Value item : AsList(container)->items) {
      if (!IsCallable(item) && AsKernel(item) == nullptr) continue;
      Find(LintRule::kHardCoded, index_node == nullptr ? 1 : index_node->line, "index",
           "which code runs depends on chance or on how often forward was called");
    }
  }
  if (auto* list = AsList(container)) {
    if (index_node != nullptr && index_node->kind == Kind::kSlice)
      return arena_.List(list->items, false);
    return ItemOf(list->items, list->exact, index);
  }
  const std::string key = ConstantKey(index);
  budget_.SpendSearch(1, 2 * AsDict(container)->items.size());
  Value joined = AsDict(container)->other;
  for (const auto& [existing, item] : AsDict(container)->items) {
    if (key.empty() || existing == key) joined = arena_.Join(joined, item);
  }
  return joined == nullptr ? arena_.Unknown() : joined;
}

Value Interpreter::ItemOfTensor(TensorObject* tensor, Value index, const Node* index_node,
                                int line) {
  const Kind kind = index_node == nullptr ? Kind::kOther : index_node->kind;
  if (kind == Kind::kList || kind == Kind::kListComprehension) {
    return Compute("index by a list", line, tensor->storages);
  }
  if (kind != Kind::kSlice) return IndexTensor(tensor, index, line);
  Shape shape = tensor->shape;
  if (shape.has_value() && !shape->empty()) {
    // A few elements of an argument of forward are still its elements, of results they are numbers.
    const bool of_argument = std::any_of(tensor->storages.begin(), tensor->storages.end(),
                                         [this](int s) { return storages_[s].argument; });
    (*shape)[0] = of_argument ? -1 : SliceLength(index_node->text);
  }
  return arena_.Tensor(tensor->storages, shape);
}

Value Interpreter::ItemOf(const std::vector<Value>& items, bool exact, Value index) {
  const std::optional<int64_t> position = ConstantInt(index);
  const int64_t size = static_cast<int64_t>(items.size());
  if (position.has_value() && exact && *position < size && *position >= -size) {
    return items[*position < 0 ? *position + size : *position];
  }
  Value joined = arena_.JoinAll(items);
  return joined == nullptr ? arena_.Unknown() : joined;
}

Value Interpreter::IndexTensor(TensorObject* tensor, Value index, int line) {
  std::vector<Value> indices = {index};
  if (auto* list = AsList(index)) indices = list->items;
  Shape shape = tensor->shape;
  size_t dimension = 0;
  for (Value i : indices) {
    if (AsTensor(i) != nullptr || AsList(i) != nullptr ||
        (AsHost(i) == nullptr && HoldsTensor(i))) {
      if (AsTensor(i) != nullptr && AsTensor(i)->IsSmall() && tensor->IsSmall()) continue;
      StorageSet sources = tensor->storages;
      AddTo(&sources, Reachable(i));
      return Compute("index by a tensor", line, sources);
    }
    const HostObject* host = AsHost(i);
    if (!shape.has_value()) continue;
    if (host != nullptr && host->is_int) {
      if (dimension < shape->size()) shape->erase(shape->begin() + dimension);
    } else if (IsNone(i)) {
      shape->insert(shape->begin() + dimension++, 1);
    } else {
      shape.reset();  // a slice among several, an ellipsis, or an unknown number
    }
  }
  return arena_.Tensor(tensor->storages, shape, tensor->picked || ChosenByElement(indices));
}

// Elements of a named tuple, or of an object that the program iterates over by its own methods.
void Interpreter::AddInstanceItems(InstanceObject* instance, std::vector<Value>* items,
                                   bool* exact) {
  if (IsNamedTuple(instance)) {
    // Fields in order, as MakeNamedTuple and annotations give them.
    bool known = true;
    for (const std::string& field : FieldsOf(instance->type)) {
      auto it = instance->attributes.find(field);
      known = known && it != instance->attributes.end();
      if (known) items->push_back(it->second);
    }
    if (known) return;
    *exact = false;
    for (Value value : AttributeValues(instance)) items->push_back(value);
    return;
  }
  *exact = false;
  Value iterator = Call(GetAttribute(instance, "__iter__", 0), {});
  if (AsInstance(iterator) == nullptr) {
    AddItems(iterator, items, exact);
  } else {
    items->push_back(Call(GetAttribute(iterator, "__next__", 0), {}));
  }
}

void Interpreter::AddItems(Value iterable, std::vector<Value>* items, bool* exact) {
  const Nested nested(&call_depth_);
  if (TooDeep(call_depth_, kMaxCallsInCalls, 1)) return;
  if (auto* list = AsList(iterable)) {
    bool same = true;
    const std::vector<Value> more = ItemsOf(list, &same);
    if (items->size() + more.size() <= kMostItems) {
      items->insert(items->end(), more.begin(), more.end());
      *exact = *exact && same;
      return;
    }
    *exact = false;
    budget_.UseUp();  // what is left out cannot be followed
    (void)Spend();
    return;
  }
  if (auto* module = AsModule(iterable)) {
    budget_.Spend(module->children.size());
    items->insert(items->end(), module->children.begin(), module->children.end());
    *exact = *exact && module->exact;
    return;
  }
  const bool all_before = *exact;
  *exact = false;
  if (auto* any = AsUnion(iterable)) {
    for (Value option : any->options) AddItems(option, items, exact);
  } else if (auto* tensor = AsTensor(iterable)) {
    Shape shape = tensor->shape;
    if (shape.has_value() && !shape->empty()) shape->erase(shape->begin());
    items->push_back(arena_.Tensor(tensor->storages, shape));
  } else if (auto* host = AsHost(iterable)) {
    items->push_back(host->is_shape ? arena_.Size() : arena_.Host(host->sources));
  } else if (auto* dict = AsDict(iterable)) {
    budget_.Spend(4 * dict->items.size());
    for (const auto& [key, value] : dict->items) {
      if (absl::StartsWith(key, "s:")) items->push_back(arena_.Constant(key.substr(2)));
    }
    if (items->empty() || dict->other != nullptr) items->push_back(arena_.Host());
  } else if (auto* instance = AsInstance(iterable)) {
    *exact = all_before;
    AddInstanceItems(instance, items, exact);
  } else {
    items->push_back(arena_.UnknownLike(iterable));
  }
}

Value Interpreter::Element(Value iterable, int line) {
  std::vector<Value> items;
  bool exact = true;
  AddItems(iterable, &items, &exact);
  Value joined = arena_.JoinAll(items);
  return joined == nullptr ? arena_.Unknown() : joined;
}

}  // namespace tritonrl::lint
