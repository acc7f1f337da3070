// What the abstract interpreter knows about a Python value. Objects live in an Arena until the
// program is judged; a Value is a pointer to one. Containers and instances have identity,
// everything else is immutable.
#ifndef TRITONRL_VERIFY_LINTER_VALUES_H_
#define TRITONRL_VERIFY_LINTER_VALUES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "verify/linter/ast.h"
#include "verify/linter/budget.h"
#include "verify/linter/kernel_info.h"

namespace tritonrl::lint {

struct Object;
using Value = Object*;

// Numbers of tensor storages, sorted.
using StorageSet = std::vector<int>;
void AddTo(StorageSet* set, const StorageSet& more);

// Sizes of a tensor, -1 where unknown; nullopt when even the number of dimensions is unknown.
using Shape = std::optional<std::vector<int64_t>>;

enum class ObjectKind : uint8_t {
  kUnknown,
  kHost,
  kTensor,
  kSymbol,
  kFunction,
  kBound,
  kClass,
  kInstance,
  kModule,
  kKernel,
  kLauncher,
  kMethod,
  kList,
  kDict,
  kSuper,
  kPartial,
  kUnion,
};

struct Object {
  explicit Object(ObjectKind k) : kind(k) {}
  virtual ~Object() = default;
  const ObjectKind kind;
  size_t birth = 0;   // how many objects were made before it
  uint64_t walk = 0;  // number of the walk that came by last
};

// Nothing is known; `sources` are the storages its contents may come from.
struct UnknownObject : Object {
  UnknownObject() : Object(ObjectKind::kUnknown) {}
  StorageSet sources;
  bool guess =
      false;  // an argument made up for a function that somebody else calls, or a part of it
  // Set for an argument of a method that Python or a library calls without a tensor from here.
  // Operators on such arguments alone are those of numbers and of the program's own objects.
  bool remote = false;
};

// A Python scalar, string, None, dtype, size ...: no tensor.
struct HostObject : Object {
  using Constant = std::variant<std::monostate, std::nullptr_t, bool, int64_t, double, std::string>;
  HostObject() : Object(ObjectKind::kHost) {}
  Constant constant;      // monostate: not known; nullptr: None
  std::string prefix;     // a text that is not known begins so
  bool is_int = false;    // an int for sure, known or not
  bool is_shape = false;  // a torch.Size of unknown length
  bool is_size = false;   // an int that is not negative: a size, a count
  StorageSet sources;     // it was read from elements of these storages
  StorageSet addresses;   // it is the address of these storages (data_ptr)
};

struct TensorObject : Object {
  TensorObject() : Object(ObjectKind::kTensor) {}
  StorageSet storages;  // those it may be a view of
  bool picked = false;  // chosen by an element that a loop reads from a tensor
  Shape shape;
  // At most kScalarElements elements in one dimension for sure, or half as many in several:
  // post-processing such tensors on the host is no computation.
  bool IsSmall() const;
};
inline constexpr int64_t kScalarElements = 16;

// Something of a library or of Python itself, by its full name: "torch.nn.functional.relu",
// "builtins.len". A name that ends in "()" stands for what a call of it gave (a decorator, a
// context manager).
struct SymbolObject : Object {
  SymbolObject() : Object(ObjectKind::kSymbol) {}
  std::string name;
};

// Variables of a function, class or module. Names are numbers of the Ast.
struct Scope {
  Scope* parent = nullptr;        // where it was defined
  bool is_class = false;          // not seen from functions inside
  bool is_comprehension = false;  // := inside binds outside of it
  std::vector<std::pair<int, Value>> variables;
  std::vector<int> globals, nonlocals;

  Value* Find(int name);
};

struct ClassObject;

struct FunctionObject : Object {
  FunctionObject() : Object(ObjectKind::kFunction) {}
  const Node* node = nullptr;  // kFunctionDef or kLambda
  std::string name;
  Scope* closure = nullptr;
  ClassObject* owner = nullptr;  // class in whose body it stands, for super()
  enum class Binding : uint8_t { kPlain, kStatic, kClass, kProperty };
  Binding binding = Binding::kPlain;
  bool cached = false;                                  // by functools.lru_cache or cache
  std::map<uint64_t, Value> kept;                       // what it gave, by a number for arguments
  FunctionObject* setter = nullptr;                     // of a property
  FunctionObject* deleter = nullptr;                    // of a property
  std::vector<std::pair<const Node*, Value>> defaults;  // parameter node, its default
  std::vector<Value> also;  // of a custom operator: functions registered for devices
};

// A function with its first argument filled in.
struct BoundObject : Object {
  BoundObject() : Object(ObjectKind::kBound) {}
  Value function = nullptr;
  Value self = nullptr;
};

struct ClassObject : Object {
  ClassObject() : Object(ObjectKind::kClass) {}
  std::string name;
  const Node* node = nullptr;
  std::vector<Value> bases;
  Scope* body = nullptr;
  std::vector<std::string> fields;                    // of a named tuple
  std::optional<std::vector<std::string>> annotated;  // fields of its body; made when used
  bool cut = false;                                   // it has more bases than `order` holds
  std::vector<Value> order;  // itself and its bases as Python searches them; made when used
};

struct InstanceObject : Object {
  InstanceObject() : Object(ObjectKind::kInstance) {}
  ClassObject* type = nullptr;  // null: an opaque helper object such as autograd's ctx
  bool made_again = false;
  int pass = 0;  // of a loop in which it was made
  std::map<std::string, Value, std::less<>> attributes;
};

// A torch.nn module made by calling its class, such as nn.Linear(3, 4).
struct ModuleObject : Object {
  ModuleObject() : Object(ObjectKind::kModule) {}
  std::string name;  // "torch.nn.Linear"
  std::vector<Value> children;
  bool exact = true;  // children are all in order; otherwise they are what there may be
  std::map<std::string, Value, std::less<>> attributes;
};

struct KernelObject : Object {
  KernelObject() : Object(ObjectKind::kKernel) {}
  FunctionObject* function = nullptr;
  std::map<std::string, KernelInfo> infos;  // by the constants of a launch
};

// kernel[grid]
struct LauncherObject : Object {
  LauncherObject() : Object(ObjectKind::kLauncher) {}
  KernelObject* kernel = nullptr;
  Value grid = nullptr;
};

// tensor.name or container.name, not yet called.
struct MethodObject : Object {
  MethodObject() : Object(ObjectKind::kMethod) {}
  Value self = nullptr;
  std::string name;
};

// A list, tuple, set, generator or other sequence.
struct ListObject : Object {
  ListObject() : Object(ObjectKind::kList) {}
  std::vector<Value> items;
  bool lasts = false;  // an iterator that was made before forward and goes on from call to call
  bool grows = false;  // it was longer or shorter after a call of forward
  bool exact = true;   // items are the elements in order; otherwise they are what elements may be
  // Iterators give their elements once; they and views look at the containers that they go over
  // when they are asked. `over` has what those held when it was made.
  enum class Use : uint8_t { kList, kIterator, kView };
  Use use = Use::kList;
  std::vector<std::pair<Value, std::vector<Value>>> over;
};

struct DictObject : Object {
  DictObject() : Object(ObjectKind::kDict) {}
  std::vector<std::pair<std::string, Value>> items;  // by constant key, "i:3" or "s:name"
  Value other = nullptr;                             // join of all values under unknown keys
};

struct SuperObject : Object {
  SuperObject() : Object(ObjectKind::kSuper) {}
  ClassObject* after = nullptr;
  Value self = nullptr;
};

struct PartialObject : Object {
  PartialObject() : Object(ObjectKind::kPartial) {}
  Value function = nullptr;
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

// One of several; never nested.
struct UnionObject : Object {
  UnionObject() : Object(ObjectKind::kUnion) {}
  std::vector<Value> options;
};

// Casts by kind; null when the value is of another kind.
template <typename T>
T* As(Value value, ObjectKind kind) {
  return value != nullptr && value->kind == kind ? static_cast<T*>(value) : nullptr;
}
inline HostObject* AsHost(Value v) { return As<HostObject>(v, ObjectKind::kHost); }
inline TensorObject* AsTensor(Value v) { return As<TensorObject>(v, ObjectKind::kTensor); }
inline SymbolObject* AsSymbol(Value v) { return As<SymbolObject>(v, ObjectKind::kSymbol); }
inline FunctionObject* AsFunction(Value v) { return As<FunctionObject>(v, ObjectKind::kFunction); }
inline ClassObject* AsClass(Value v) { return As<ClassObject>(v, ObjectKind::kClass); }
inline InstanceObject* AsInstance(Value v) { return As<InstanceObject>(v, ObjectKind::kInstance); }
inline ModuleObject* AsModule(Value v) { return As<ModuleObject>(v, ObjectKind::kModule); }
inline KernelObject* AsKernel(Value v) { return As<KernelObject>(v, ObjectKind::kKernel); }
inline ListObject* AsList(Value v) { return As<ListObject>(v, ObjectKind::kList); }
inline DictObject* AsDict(Value v) { return As<DictObject>(v, ObjectKind::kDict); }
inline UnionObject* AsUnion(Value v) { return As<UnionObject>(v, ObjectKind::kUnion); }

inline bool IsRemote(Value v) {
  const auto* unknown = As<UnknownObject>(v, ObjectKind::kUnknown);
  return unknown != nullptr && unknown->remote;
}

// The constant of a host value, if it is known and of that type.
std::optional<int64_t> ConstantInt(Value value);
const std::string* ConstantString(Value value);
// Under which attribute a value is kept whose name is not known: "*" and what the name begins with.
std::string UnknownName(Value name);
// A text for a constant string or int as the key of a dictionary, "s:name" or "i:3"; "" when it is
// not constant.
std::string ConstantKey(Value index);
bool IsNone(Value value);
// Truth of a value where it is certain.
std::optional<bool> Truth(Value value);

// Owns objects and makes the common ones. What that takes counts against a budget.
class Arena {
 public:
  explicit Arena(Budget* budget) : budget_(budget) {}

  template <typename T>
  T* New() {
    auto owned = std::make_unique<T>();
    T* raw = owned.get();
    raw->birth = objects_.size();
    objects_.push_back(std::move(owned));
    return raw;
  }
  Scope* NewScope(Scope* parent);
  size_t size() const { return objects_.size(); }

  Value Unknown(StorageSet sources = {});
  Value Guess(StorageSet sources = {});
  Value Remote(StorageSet sources = {});
  Value UnknownLike(Value whole);  // a part of `whole`
  Value Host(StorageSet sources = {});
  Value Int(StorageSet sources = {});
  Value Size(StorageSet sources = {});
  Value Constant(HostObject::Constant constant);
  Value Symbol(std::string name);
  Value Tensor(StorageSet storages, Shape shape = std::nullopt, bool picked = false);
  Value List(std::vector<Value> items, bool exact = true);
  Value Method(Value self, absl::string_view name);

  // Returns a value that may be either. Null means "not bound": the other value is returned.
  Value Join(Value a, Value b);
  Value JoinAll(const std::vector<Value>& values);

  // What is stored in all objects and scopes now. After a first call of forward, Widen makes every
  // number, string or length unknown that the call changed: it may be anything in a later call.
  struct Slot {
    Object* owner = nullptr;  // a list or dictionary; `index` is that of the element
    Scope* scope = nullptr;   // or a scope; `index` is that of the variable
    Value* place = nullptr;   // or an attribute
    size_t index = 0;
    Value value = nullptr;  // the constant that stood there
    bool changed = false;   // since the snapshot
  };
  struct State {
    std::vector<Slot> constants;
    std::vector<std::pair<ListObject*, size_t>> lengths;
    size_t objects = 0, scopes = 0;  // that existed
  };
  State Snapshot();
  // True when something was found changed that was not before. Numbers that count calls (of which
  // both are whole and known) get `call_count` as a source.
  bool Widen(State* before, int call_count);
  // A number for what can be called through all that existed when `state` was taken: where a call
  // of forward changes it, a later call may run other code.
  uint64_t Callables(const State& state);

  // A number for the functions, classes, kernels and instances that a value is or holds in lists
  // and dictionaries, in their order; 0 when there are none.
  uint64_t CallableHash(Value value);
  // The same for numbers and texts that are certain as well, outside of lists.
  uint64_t StateHash(Value value);
  // All storages reachable from a value: views, elements, what numbers were read from.
  StorageSet Reachable(Value value);
  // True when a tensor, or something whose contents come from one, is inside.
  bool HoldsTensor(Value value);
  // What is in lists, dictionaries and unions, in each other or themselves, each thing once.
  std::vector<Value> Flat(Value value);
  // The classes and symbols in which an attribute is searched, in Python's order; no more than
  // kMostBases.
  const std::vector<Value>& SearchOrder(ClassObject* type);
  static constexpr size_t kMostBases = 128;

 private:
  // Calls `visit` with each object that can be reached, until it gives false.
  template <typename Visit>
  void Walk(Value value, Visit visit);

  Budget* budget_;
  uint64_t walk_ = 0;  // number of the last walk
  std::vector<Value> pending_;
  std::vector<std::unique_ptr<Object>> objects_;
  std::vector<std::unique_ptr<Scope>> scopes_;
};

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_VALUES_H_
