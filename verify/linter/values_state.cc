// What a call of forward changes for later calls.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

constexpr int kHashDepth = 4;  // of lists in lists

uint64_t Mix(uint64_t a, uint64_t b) { return (a ^ b) * 0x9E3779B97F4A7C15u; }

uint64_t Address(const void* place) { return reinterpret_cast<uintptr_t>(place); }

// By what callables a value holds. Each object is looked at once for each depth, as lists can hold
// each other and themselves in many ways.
class Hasher {
 public:
  explicit Hasher(Budget* budget) : budget_(budget) {}

  uint64_t Hash(Value value, int depth) {
    if (value == nullptr || depth > kHashDepth) return 0;
    const auto [known, first] = seen_.try_emplace({value, depth}, 0);
    if (!first) return known->second;
    budget_->Spend(4);
    const uint64_t hash = HashOnce(value, depth);
    seen_[{value, depth}] = hash;
    return hash;
  }

 private:
  // Equal alternatives count once: the same line makes another list in each call.
  uint64_t HashOfAlternatives(const std::vector<Value>& options, int depth) {
    std::vector<uint64_t> hashes;
    for (Value option : options) hashes.push_back(Hash(option, depth));
    std::sort(hashes.begin(), hashes.end());
    hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
    uint64_t sum = 0;
    for (uint64_t hash : hashes) sum += hash;
    return sum;
  }

  uint64_t HashOnce(Value value, int depth) {
    uint64_t hash = 0;
    switch (value->kind) {
      // By what stands in the source, as the same line makes a new object in each call.
      case ObjectKind::kFunction:
        return Address(AsFunction(value)->node);
      case ObjectKind::kClass:
        return Address(AsClass(value)->node);
      case ObjectKind::kKernel:
        return Address(AsKernel(value)->function);
      case ObjectKind::kInstance: {
        const InstanceObject* instance = AsInstance(value);
        if (instance->type == nullptr) return 0;
        return instance->made_again ? Address(instance->type->node) + 1 : Address(instance);
      }
      case ObjectKind::kSymbol:
        return std::hash<std::string>()(AsSymbol(value)->name) | 1;
      case ObjectKind::kBound:
        return Mix(Hash(static_cast<BoundObject*>(value)->function, depth + 1), 3);
      case ObjectKind::kPartial:
        return Mix(Hash(static_cast<PartialObject*>(value)->function, depth + 1), 5);
      case ObjectKind::kUnion:
        return HashOfAlternatives(AsUnion(value)->options, depth);
      case ObjectKind::kList:
        // A loop that goes on appending what the same lines make comes to rest.
        budget_->Spend(AsList(value)->items.size());
        if (!AsList(value)->exact) return HashOfAlternatives(AsList(value)->items, depth + 1);
        for (Value item : AsList(value)->items) {
          const uint64_t h = Hash(item, depth + 1);
          hash = h == 0 ? hash : Mix(hash + 1, h);
        }
        return hash;
      case ObjectKind::kDict:
        budget_->Spend(AsDict(value)->items.size());
        for (const auto& [key, item] : AsDict(value)->items) {
          const uint64_t h = Hash(item, depth + 1);
          hash = h == 0 ? hash : Mix(hash + std::hash<std::string>()(key), h);
        }
        return hash + Hash(AsDict(value)->other, depth + 1);
      default:
        return 0;
    }
  }

  Budget* budget_;
  absl::flat_hash_map<std::pair<Value, int>, uint64_t> seen_;
};

}  // namespace

uint64_t Arena::CallableHash(Value value) {
  // Most values hold nothing at all that could be called.
  if (value == nullptr || AsHost(value) != nullptr || AsTensor(value) != nullptr) return 0;
  return Hasher(budget_).Hash(value, 0);
}

uint64_t Arena::Callables(const State& state) {
  uint64_t sum = 0;
  budget_->Spend(state.objects / 4);
  Hasher hasher(budget_);
  for (size_t i = 0; i < state.objects; ++i) {
    Object* object = objects_[i].get();
    if (object->kind == ObjectKind::kList || object->kind == ObjectKind::kDict) {
      sum += Mix(i + 1, hasher.Hash(object, 0));
    } else if (auto* instance = AsInstance(object)) {
      for (const auto& [name, value] : instance->attributes) {
        const uint64_t h = hasher.Hash(value, 1);
        if (h != 0) sum += Mix(i + std::hash<std::string>()(name), h);
      }
    }
  }
  for (size_t i = 0; i < state.scopes; ++i) {
    for (const auto& [name, value] : scopes_[i]->variables) {
      const uint64_t h = hasher.Hash(value, 1);
      if (h != 0) sum += Mix(i * 65537 + name, h);
    }
  }
  return sum;
}

Arena::State Arena::Snapshot() {
  budget_->Spend(objects_.size() / 4);
  State state;
  state.objects = objects_.size();
  state.scopes = scopes_.size();
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
    } else if (auto* module = AsModule(object)) {
      for (auto& [name, value] : module->attributes) {
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

bool Arena::Widen(State* before, int call_count) {
  bool widened = false;
  for (Slot& slot : before->constants) {
    Value* now = Current(slot);
    if (now == nullptr || *now == slot.value || AsHost(*now) == nullptr) continue;
    const auto *old_host = AsHost(slot.value), *new_host = AsHost(*now);
    if (old_host->constant == new_host->constant) continue;
    widened = widened || !slot.changed;
    slot.changed = true;
    StorageSet sources = new_host->sources;
    if (ConstantInt(slot.value).has_value() && ConstantInt(*now).has_value())
      AddTo(&sources, {call_count});
    *now = old_host->is_int && new_host->is_int ? Int(sources) : Host(sources);
  }
  for (const auto& [list, length] : before->lengths) {
    if (list->items.size() == length) continue;
    list->exact = false;
    list->grows = true;
  }
  return widened;
}

uint64_t Arena::StateHash(Value value) {
  if (value == nullptr) return 0;
  const HostObject* host = AsHost(value);
  if (host == nullptr) return CallableHash(value);
  if (const auto* text = std::get_if<std::string>(&host->constant))
    return std::hash<std::string>()(*text) | 1;
  const std::optional<int64_t> number = ConstantInt(value);
  if (number.has_value()) return Mix(static_cast<uint64_t>(*number) + 7, 11) | 1;
  return host->constant.index() == 0 ? 0 : 2 * host->constant.index() + 1;
}

}  // namespace tritonrl::lint
