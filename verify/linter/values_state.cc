// What a call of forward changes for later calls.
#include "verify/linter/values.h"

namespace tritonrl::lint {
namespace {

bool IsConstant(Value value) {
  const HostObject* host = AsHost(value);
  return host != nullptr && !std::holds_alternative<std::monostate>(host->constant);
}

Value* Current(const Arena::Slot& slot) {
  if (slot.place != nullptr) return slot.place;
  if (slot.scope != nullptr) return &slot.scope->variables[slot.index].second;
  if (auto* list = AsList(slot.owner))
    return slot.index < list->items.size() ? &list->items[slot.index] : nullptr;
  auto* dict = AsDict(slot.owner);
  return slot.index < dict->items.size() ? &dict->items[slot.index].second : nullptr;
}

}  // namespace

Arena::State Arena::Snapshot() const {
  State state;
  for (const auto& owned : objects_) {
    Object* object = owned.get();
    if (auto* list = AsList(object)) {
      state.lengths.emplace_back(list, list->items.size());
      for (size_t i = 0; i < list->items.size(); ++i) {
        if (IsConstant(list->items[i]))
          state.constants.push_back({.owner = list, .index = i, .value = list->items[i]});
      }
    } else if (auto* dict = AsDict(object)) {
      for (size_t i = 0; i < dict->items.size(); ++i) {
        if (IsConstant(dict->items[i].second))
          state.constants.push_back({.owner = dict, .index = i, .value = dict->items[i].second});
      }
    } else if (auto* instance = AsInstance(object)) {
      for (auto& [name, value] : instance->attributes) {
        if (IsConstant(value)) state.constants.push_back({.place = &value, .value = value});
      }
    }
  }
  for (const auto& scope : scopes_) {
    for (size_t i = 0; i < scope->variables.size(); ++i) {
      Value value = scope->variables[i].second;
      if (IsConstant(value))
        state.constants.push_back({.scope = scope.get(), .index = i, .value = value});
    }
  }
  return state;
}

void Arena::Widen(const State& before) {
  for (const Slot& slot : before.constants) {
    Value* now = Current(slot);
    if (now == nullptr || *now == slot.value || AsHost(*now) == nullptr) continue;
    const auto *old_host = AsHost(slot.value), *new_host = AsHost(*now);
    if (old_host->constant == new_host->constant) continue;
    *now = old_host->is_int && new_host->is_int ? Int(new_host->sources) : Host(new_host->sources);
  }
  for (const auto& [list, length] : before.lengths) {
    if (list->items.size() != length) list->exact = false;
  }
}

}  // namespace tritonrl::lint
