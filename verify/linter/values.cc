#include "verify/linter/values.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace tritonrl::lint {
namespace {

// Beyond this many alternatives only their contents are remembered.
constexpr int kMaxOptions = 16;

Shape JoinShapes(const Shape& a, const Shape& b) {
  if (!a.has_value() || !b.has_value() || a->size() != b->size()) return std::nullopt;
  Shape joined = a;
  for (size_t i = 0; i < a->size(); ++i) {
    if ((*a)[i] != (*b)[i]) (*joined)[i] = -1;
  }
  return joined;
}

void AppendOptions(Value value, std::vector<Value>* options) {
  if (auto* any = AsUnion(value)) {
    for (Value option : any->options) AppendOptions(option, options);
    return;
  }
  if (std::find(options->begin(), options->end(), value) == options->end())
    options->push_back(value);
}

}  // namespace

void AddTo(StorageSet* set, const StorageSet& more) {
  if (more.empty() || set == &more) return;
  if (set->empty()) {
    *set = more;
    return;
  }
  StorageSet merged;
  merged.reserve(set->size() + more.size());
  std::set_union(set->begin(), set->end(), more.begin(), more.end(), std::back_inserter(merged));
  *set = std::move(merged);
}

bool TensorObject::IsSmall() const {
  if (!shape.has_value()) return false;
  int64_t elements = 1;
  for (int64_t size : *shape) {
    if (size < 0) return false;
    elements *= size;
    if (elements > kScalarElements) return false;
  }
  // Rows of partial results may be longer than what could be a small matrix.
  return shape->size() <= 1 || elements <= kScalarElements / 2;
}

Value* Scope::Find(int name) {
  for (auto& [key, value] : variables) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::optional<int64_t> ConstantInt(Value value) {
  const HostObject* host = AsHost(value);
  if (host == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<int64_t>(&host->constant)) return *number;
  if (const auto* truth = std::get_if<bool>(&host->constant)) return *truth ? 1 : 0;
  return std::nullopt;
}

const std::string* ConstantString(Value value) {
  const HostObject* host = AsHost(value);
  return host == nullptr ? nullptr : std::get_if<std::string>(&host->constant);
}

std::string UnknownName(Value name) {
  const HostObject* host = AsHost(name);
  return host == nullptr ? "*" : absl::StrCat("*", host->prefix);
}

std::string ConstantKey(Value index) {
  if (const std::string* text = ConstantString(index)) return absl::StrCat("s:", *text);
  if (std::optional<int64_t> number = ConstantInt(index)) return absl::StrCat("i:", *number);
  return "";
}

bool IsNone(Value value) {
  const HostObject* host = AsHost(value);
  return host != nullptr && std::holds_alternative<std::nullptr_t>(host->constant);
}

std::optional<bool> Truth(Value value) {
  if (const HostObject* host = AsHost(value)) {
    const auto& c = host->constant;
    if (std::holds_alternative<std::nullptr_t>(c)) return false;
    if (const auto* truth = std::get_if<bool>(&c)) return *truth;
    if (const auto* number = std::get_if<int64_t>(&c)) return *number != 0;
    if (const auto* number = std::get_if<double>(&c)) return *number != 0;
    if (const auto* text = std::get_if<std::string>(&c)) return !text->empty();
    return std::nullopt;
  }
  if (const ListObject* list = AsList(value)) {
    if (list->exact && list->use == ListObject::Use::kList) return !list->items.empty();
    return std::nullopt;
  }
  if (value == nullptr) return std::nullopt;
  switch (value->kind) {
    case ObjectKind::kFunction:
    case ObjectKind::kClass:
    case ObjectKind::kKernel:
    case ObjectKind::kBound:
      return true;
    default:
      return std::nullopt;
  }
}

Scope* Arena::NewScope(Scope* parent) {
  scopes_.push_back(std::make_unique<Scope>());
  scopes_.back()->parent = parent;
  return scopes_.back().get();
}

Value Arena::Unknown(StorageSet sources) {
  budget_->Spend(sources.size() / 4);
  auto* unknown = New<UnknownObject>();
  unknown->sources = std::move(sources);
  return unknown;
}

Value Arena::Guess(StorageSet sources) {
  Value unknown = Unknown(std::move(sources));
  static_cast<UnknownObject*>(unknown)->guess = true;
  return unknown;
}

Value Arena::Remote(StorageSet sources) {
  Value guess = Guess(std::move(sources));
  static_cast<UnknownObject*>(guess)->remote = true;
  return guess;
}

Value Arena::UnknownLike(Value whole) {
  if (IsRemote(whole)) return Remote(Reachable(whole));
  auto* unknown = As<UnknownObject>(whole, ObjectKind::kUnknown);
  return unknown != nullptr && unknown->guess ? Guess(Reachable(whole)) : Unknown(Reachable(whole));
}

Value Arena::Host(StorageSet sources) {
  budget_->Spend(sources.size() / 4);
  auto* host = New<HostObject>();
  host->sources = std::move(sources);
  return host;
}

Value Arena::Int(StorageSet sources) {
  auto* host = New<HostObject>();
  host->is_int = true;
  host->sources = std::move(sources);
  return host;
}

Value Arena::Size(StorageSet sources) {
  Value value = Int(std::move(sources));
  AsHost(value)->is_size = true;
  return value;
}

Value Arena::Constant(HostObject::Constant constant) {
  auto* host = New<HostObject>();
  if (const auto* text = std::get_if<std::string>(&constant)) budget_->Spend(text->size() / 16);
  host->is_int = std::holds_alternative<int64_t>(constant);
  host->constant = std::move(constant);
  return host;
}

Value Arena::Symbol(std::string name) {
  budget_->Spend(name.size() / 16);
  auto* symbol = New<SymbolObject>();
  symbol->name = std::move(name);
  return symbol;
}

Value Arena::Tensor(StorageSet storages, Shape shape, bool picked) {
  budget_->Spend(storages.size() / 4);
  auto* tensor = New<TensorObject>();
  tensor->storages = std::move(storages);
  tensor->shape = std::move(shape);
  tensor->picked = picked;
  return tensor;
}

Value Arena::List(std::vector<Value> items, bool exact) {
  budget_->Spend(items.size());
  auto* list = New<ListObject>();
  list->items = std::move(items);
  list->exact = exact;
  return list;
}

Value Arena::Method(Value self, absl::string_view name) {
  auto* method = New<MethodObject>();
  method->self = self;
  method->name = std::string(name);
  return method;
}

Value Arena::Join(Value a, Value b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  if (auto* x = AsHost(a), *y = AsHost(b); x != nullptr && y != nullptr) {
    auto* joined = New<HostObject>();
    if (x->constant == y->constant) joined->constant = x->constant;
    // None beside something else stays an alternative: "bias is None" must not swallow a tensor.
    joined->is_int = x->is_int && y->is_int;
    joined->is_shape = x->is_shape && y->is_shape;
    joined->sources = x->sources;
    AddTo(&joined->sources, y->sources);
    budget_->Spend(joined->sources.size() / 4);
    joined->addresses = x->addresses;
    AddTo(&joined->addresses, y->addresses);
    return joined;
  }
  if (auto* x = AsTensor(a), *y = AsTensor(b); x != nullptr && y != nullptr) {
    StorageSet storages = x->storages;
    AddTo(&storages, y->storages);
    return Tensor(std::move(storages), JoinShapes(x->shape, y->shape));
  }
  if (auto* x = AsSymbol(a), *y = AsSymbol(b); x != nullptr && y != nullptr && x->name == y->name) {
    return a;
  }
  std::vector<Value> options;
  AppendOptions(a, &options);
  AppendOptions(b, &options);
  budget_->Spend(4 + 2 * options.size());
  // Tensors among the options become one, hosts too, so that unions stay short.
  Value tensor = nullptr, host = nullptr;
  std::vector<Value> kept;
  for (Value option : options) {
    if (AsTensor(option) != nullptr) {
      tensor = tensor == nullptr ? option : Join(tensor, option);
    } else if (AsHost(option) != nullptr) {
      host = host == nullptr ? option : Join(host, option);
    } else {
      kept.push_back(option);
    }
  }
  if (tensor != nullptr) kept.push_back(tensor);
  if (host != nullptr) kept.push_back(host);
  if (kept.size() == 1) return kept[0];
  auto* joined = New<UnionObject>();
  joined->options = std::move(kept);
  if (static_cast<int>(joined->options.size()) > kMaxOptions) return Unknown(Reachable(joined));
  return joined;
}

Value Arena::JoinAll(const std::vector<Value>& values) {
  Value joined = nullptr;
  for (Value value : values) joined = Join(joined, value);
  return joined;
}

const std::vector<Value>& Arena::SearchOrder(ClassObject* type) {
  if (!type->order.empty()) return type->order;
  type->order = {type};  // ends a cycle of bases
  std::vector<Value> all = {type};
  for (Value base : type->bases) {
    auto* parent = AsClass(base);
    const std::vector<Value> above =
        parent != nullptr ? SearchOrder(parent) : std::vector<Value>{base};
    all.insert(all.end(), above.begin(), above.end());
    budget_->Spend(above.size());
    type->cut = type->cut || (parent != nullptr && parent->cut) || all.size() > 4 * kMostBases;
    if (type->cut) break;
  }
  // Where a class stands twice, as under a diamond, its last place counts: that is what Python's
  // order comes to for classes that it accepts.
  auto same = [](Value a, Value b) {
    return a == b || (AsSymbol(a) != nullptr && AsSymbol(b) != nullptr &&
                      AsSymbol(a)->name == AsSymbol(b)->name);
  };
  std::vector<Value> order;
  budget_->SpendSearch(all.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::none_of(all.begin() + i + 1, all.end(), [&](Value v) { return same(v, all[i]); }))
      order.push_back(all[i]);
  }
  type->cut = type->cut || order.size() > kMostBases;
  if (type->cut) order.resize(std::min(order.size(), kMostBases));
  type->order = std::move(order);
  return type->order;
}

}  // namespace tritonrl::lint
