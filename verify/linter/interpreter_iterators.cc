// Iterators and views: they look at their containers when they are asked, and most only once.
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

std::vector<Value> ContentsOf(Value container) {
  if (auto* list = AsList(container)) return list->items;
  std::vector<Value> contents;
  if (auto* dict = AsDict(container)) {
    for (const auto& [key, item] : dict->items) contents.push_back(item);
    contents.push_back(dict->other);
  }
  return contents;
}

}  // namespace

Value Interpreter::Iterator(std::vector<Value> items, bool exact,
                            const std::vector<Value>& containers, bool view) {
  auto* iterator = AsList(arena_.List(std::move(items), exact));
  iterator->use = view ? ListObject::Use::kView : ListObject::Use::kIterator;
  for (Value container : containers) {
    if (AsList(container) == nullptr && AsDict(container) == nullptr) continue;
    iterator->over.emplace_back(container, ContentsOf(container));
    budget_.Spend(iterator->over.back().second.size());
  }
  return iterator;
}

std::vector<Value> Interpreter::ItemsOf(ListObject* list, bool* exact) {
  std::vector<Value> items = list->items;
  budget_.Spend(items.size());
  *exact = *exact && list->exact;
  for (const auto& [container, then] : list->over) {
    budget_.Spend(then.size());
    const std::vector<Value> now = ContentsOf(container);
    if (now == then) continue;
    *exact = false;
    items.insert(items.end(), now.begin(), now.end());
    items.push_back(arena_.Unknown(Reachable(container)));
  }
  if (list->use == ListObject::Use::kIterator) list->exact = false;  // the next may find nothing
  return items;
}

Value Interpreter::CopyOf(Value value, bool deep, int depth) {
  constexpr int kMostLevels = 6;
  if (depth > kMostLevels) return arena_.Unknown(Reachable(value));
  auto inner = [&](Value item) {
    return deep && item != nullptr ? CopyOf(item, true, depth + 1) : item;
  };
  if (auto* tensor = AsTensor(value)) return NewTensor(tensor->storages, tensor->shape);
  if (!Spend()) return arena_.Unknown();
  if (auto* list = AsList(value)) {
    std::vector<Value> items;
    for (Value item : list->items) items.push_back(inner(item));
    return arena_.List(std::move(items), list->exact && list->use == ListObject::Use::kList);
  }
  if (auto* dict = AsDict(value)) {
    auto* copy = arena_.New<DictObject>();
    budget_.Spend(4 * dict->items.size());
    for (const auto& [key, item] : dict->items) copy->items.emplace_back(key, inner(item));
    copy->other = inner(dict->other);
    return copy;
  }
  if (auto* instance = AsInstance(value)) {
    auto* copy = arena_.New<InstanceObject>();
    copy->type = instance->type;
    copy->made_again = true;
    budget_.Spend(4 * instance->attributes.size());
    for (const auto& [name, item] : instance->attributes) copy->attributes[name] = inner(item);
    if (copy->type != nullptr) instances_.push_back(copy);
    return copy;
  }
  return value;
}

}  // namespace tritonrl::lint
