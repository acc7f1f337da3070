// What can be reached through a value.
#include <algorithm>

#include "verify/linter/values.h"

namespace tritonrl::lint {

template <typename Visit>
void Arena::Walk(Value value, Visit visit) {
  ++walk_;
  pending_.clear();
  auto push = [this](Value next) {
    if (next == nullptr || next->walk == walk_) return;
    next->walk = walk_;
    pending_.push_back(next);
  };
  push(value);
  while (!pending_.empty()) {
    const Value next = pending_.back();
    pending_.pop_back();
    budget_->Spend(1);
    if (!visit(next)) return;
    if (auto* list = AsList(next)) {
      budget_->Spend(list->items.size() / 2);
      for (Value item : list->items) push(item);
    } else if (auto* dict = AsDict(next)) {
      budget_->Spend(dict->items.size() / 2);
      for (const auto& [key, item] : dict->items) push(item);
      push(dict->other);
    } else if (auto* any = AsUnion(next)) {
      for (Value option : any->options) push(option);
    } else if (auto* instance = AsInstance(next)) {
      budget_->Spend(instance->attributes.size());
      for (const auto& [key, item] : instance->attributes) push(item);
    } else if (auto* bound = As<BoundObject>(next, ObjectKind::kBound)) {
      push(bound->self);
    } else if (auto* method = As<MethodObject>(next, ObjectKind::kMethod)) {
      push(method->self);
    } else if (auto* partial = As<PartialObject>(next, ObjectKind::kPartial)) {
      for (Value item : partial->positional) push(item);
      for (const auto& [key, item] : partial->keyword) push(item);
      push(partial->function);
    }
  }
}

StorageSet Arena::Reachable(Value value) {
  StorageSet out;
  int sets = 0;
  auto add = [&](const StorageSet& more) {
    if (more.empty()) return;
    budget_->Spend(more.size() / 4);
    out.insert(out.end(), more.begin(), more.end());
    ++sets;
  };
  Walk(value, [&](Value next) {
    if (auto* unknown = As<UnknownObject>(next, ObjectKind::kUnknown)) {
      add(unknown->sources);
    } else if (auto* host = AsHost(next)) {
      add(host->sources);
      add(host->addresses);
    } else if (auto* tensor = AsTensor(next)) {
      add(tensor->storages);
    }
    return true;
  });
  if (sets > 1) {
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }
  return out;
}

bool Arena::HoldsTensor(Value value) {
  bool found = false;
  Walk(value, [&](Value next) {
    auto* unknown = As<UnknownObject>(next, ObjectKind::kUnknown);
    found = AsTensor(next) != nullptr || (unknown != nullptr && !unknown->sources.empty());
    return !found;
  });
  return found;
}

std::vector<Value> Arena::Flat(Value value) {
  std::vector<Value> flat;
  ++walk_;
  pending_ = {value};
  while (!pending_.empty()) {
    const Value next = pending_.back();
    pending_.pop_back();
    if (next == nullptr || next->walk == walk_) continue;
    next->walk = walk_;
    budget_->Spend(1);
    if (auto* list = AsList(next)) {
      pending_.insert(pending_.end(), list->items.rbegin(), list->items.rend());
    } else if (auto* any = AsUnion(next)) {
      pending_.insert(pending_.end(), any->options.rbegin(), any->options.rend());
    } else if (auto* dict = AsDict(next)) {
      for (const auto& [key, item] : dict->items) pending_.push_back(item);
      pending_.push_back(dict->other);
    } else {
      flat.push_back(next);
    }
  }
  return flat;
}

}  // namespace tritonrl::lint
