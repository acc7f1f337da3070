// Names, assignment targets, literals, comprehensions and subscripts.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

// A literal with this many numbers is a table of results, not a list of settings.
constexpr int kTableSize = 48;
constexpr int kLongText = 4000;

std::string DictKey(Value index) {
  if (const std::string* text = ConstantString(index)) return absl::StrCat("s:", *text);
  if (std::optional<int64_t> number = ConstantInt(index)) return absl::StrCat("i:", *number);
  return "";
}

int CountNumbers(const Node* node) {
  int count = 0;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kInteger || child->kind == Kind::kFloat) ++count;
    if (child->kind == Kind::kUnary) count += CountNumbers(child);
    if (child->kind == Kind::kList || child->kind == Kind::kTuple) count += CountNumbers(child);
  }
  return count;
}

}  // namespace

Value Interpreter::Lookup(const Node* identifier) {
  Value value = LookupFrom(frame().scope, identifier->name);
  if (auto* symbol = AsSymbol(value); symbol != nullptr &&
                                      absl::StartsWith(symbol->name, "builtins.") &&
                                      IsForbiddenBuiltin(identifier->text)) {
    Forbid(identifier->line, std::string(identifier->text), "is refused in a candidate");
  }
  return value;
}

Value Interpreter::LookupFrom(Scope* scope, int name) {
  bool innermost = true;
  auto has = [name](const std::vector<int>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (Scope* s = scope; s != nullptr; s = s->parent) {
    if (s->is_class && !innermost) continue;
    if (innermost && has(s->globals)) {
      s = module_scope_;
    }
    if (Value* found = s->Find(name)) return *found;
    innermost = false;
    if (s == module_scope_) break;
  }
  const std::string& text = ast_->NameOf(name);
  if (!wildcards_.empty() && !IsPythonBuiltin(text)) {
    return arena_.Symbol(absl::StrCat(wildcards_.back(), ".", text));
  }
  if (text == "__name__") return arena_.Constant(std::string("candidate"));
  return arena_.Symbol(absl::StrCat("builtins.", text));
}

void Interpreter::Bind(int name, Value value) {
  Scope* scope = frame().scope;
  auto has = [name](const std::vector<int>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  bool weak = false;
  if (has(scope->globals)) {
    weak = undecided_ > 0;
    scope = module_scope_;
  } else if (has(scope->nonlocals)) {
    weak = undecided_ > 0;
    for (Scope* s = scope->parent; s != nullptr; s = s->parent) {
      if (!s->is_class && s->Find(name) != nullptr) {
        scope = s;
        break;
      }
    }
  }
  if (Value* found = scope->Find(name)) {
    *found = weak ? arena_.Join(*found, value) : value;
  } else {
    scope->variables.emplace_back(name, value);
  }
}

void Interpreter::Store(const Node* target, Value value) {
  if (target == nullptr) return;
  switch (target->kind) {
    case Kind::kIdentifier:
      Bind(target->name, value);
      return;
    case Kind::kAttribute: {
      const Node* attribute = target->Get(Field::kAttribute);
      Value object = Eval(target->Get(Field::kObject));
      if (attribute != nullptr) StoreAttribute(object, attribute->text, value, target->line);
      return;
    }
    case Kind::kSubscript:
      StoreSubscript(target, value);
      return;
    case Kind::kPatternList:
    case Kind::kTuplePattern:
    case Kind::kListPattern:
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kExpressionList: {
      std::vector<const Node*> targets(target->children.begin(), target->children.end());
      Unpack(targets, value);
      return;
    }
    case Kind::kListSplatPattern:
    case Kind::kListSplat:
      if (!target->children.empty()) Store(target->children[0], arena_.List({value}, false));
      return;
    default:
      Unpack({target->children.begin(), target->children.end()}, value);
  }
}

void Interpreter::Unpack(const std::vector<const Node*>& targets, Value value) {
  std::vector<Value> items;
  bool exact = true;
  AddItems(value, &items, &exact);
  const bool splat = std::any_of(targets.begin(), targets.end(), [](const Node* t) {
    return t->kind == Kind::kListSplatPattern || t->kind == Kind::kListSplat;
  });
  if (exact && !splat && items.size() == targets.size()) {
    for (size_t i = 0; i < targets.size(); ++i) Store(targets[i], items[i]);
    return;
  }
  Value element = items.empty() ? arena_.Host() : arena_.JoinAll(items);
  for (const Node* target : targets) Store(target, element);
}

void Interpreter::StoreSubscript(const Node* target, Value value) {
  Value container = Eval(target->Get(Field::kValue));
  std::vector<Value> indices;
  for (const Node* child : target->children) {
    if (child->field == Field::kSubscript) indices.push_back(EvalIndex(child));
  }
  StoreItem(container, indices.size() == 1 ? indices[0] : arena_.List(indices), value,
            target->line);
}

void Interpreter::StoreItem(Value container, Value index, Value value, int line) {
  if (auto* any = AsUnion(container)) {
    ++undecided_;
    for (Value option : any->options) StoreItem(option, index, value, line);
    --undecided_;
    return;
  }
  if (auto* tensor = AsTensor(container)) {
    // Writing elements is a copy; choosing them by a tensor is a computation.
    if (HoldsTensor(index)) Compute("index assignment by a tensor", line, tensor->storages);
    for (int storage : tensor->storages) AddTo(&storages_[storage].sources, Reachable(value));
  } else if (auto* list = AsList(container)) {
    const std::optional<int64_t> position = ConstantInt(index);
    const int64_t size = list->items.size();
    if (position.has_value() && list->exact && *position < size && *position >= -size) {
      Value& item = list->items[*position < 0 ? *position + size : *position];
      item = undecided_ > 0 ? arena_.Join(item, value) : value;
    } else {
      list->items.push_back(value);
      list->exact = false;
    }
  } else if (auto* dict = AsDict(container)) {
    const std::string key = DictKey(index);
    if (key.empty()) {
      dict->other = arena_.Join(dict->other, value);
      if (AsHost(index) != nullptr && !AsHost(index)->addresses.empty() &&
          phase_ == Phase::kForward) {
        Find(LintRule::kHardCoded, line, "cache by address",
             "results are kept by the address or identity of a tensor and would be returned for "
             "other contents");
      }
      return;
    }
    for (auto& [existing, item] : dict->items) {
      if (existing == key) {
        item = undecided_ > 0 ? arena_.Join(item, value) : value;
        return;
      }
    }
    dict->items.emplace_back(key, value);
  } else if (auto* symbol = AsSymbol(container)) {
    const std::string* key = ConstantString(index);
    if (symbol->name == "os.environ" && key != nullptr && IsPermittedVariable(*key)) return;
    Forbid(line, symbol->name, "assigns into a library or the environment");
  } else if (AsInstance(container) != nullptr) {
    Args args{.positional = {index, value}, .line = line};
    Call(GetAttribute(container, "__setitem__", line), args);
  } else if (AsKernel(container) != nullptr || AsClass(container) != nullptr) {
    Forbid(line, "[]=", "assigns into a kernel or a class");
  }
}

Value Interpreter::Eval(const Node* node) {
  if (node == nullptr) return arena_.Host();
  if (!Spend()) return arena_.Unknown();
  Value value = EvalNode(node);
  return value == nullptr ? arena_.Unknown() : value;
}

Value Interpreter::EvalNode(const Node* node) {
  switch (node->kind) {
    case Kind::kIdentifier:
      return Lookup(node);
    case Kind::kInteger:
    case Kind::kFloat:
      return EvalNumber(node);
    case Kind::kTrue:
      return arena_.Constant(true);
    case Kind::kFalse:
      return arena_.Constant(false);
    case Kind::kNone:
      return None();
    case Kind::kString:
    case Kind::kConcatenatedString:
      return EvalString(node);
    case Kind::kParenthesized:
    case Kind::kType:
      return node->children.empty() ? None() : Eval(node->children[0]);
    case Kind::kAttribute: {
      const Node* attribute = node->Get(Field::kAttribute);
      Value object = Eval(node->Get(Field::kObject));
      return attribute == nullptr ? arena_.Unknown()
                                  : GetAttribute(object, attribute->text, node->line);
    }
    case Kind::kCall:
      return EvalCall(node);
    case Kind::kSubscript:
      return EvalSubscript(node);
    case Kind::kBinary: {
      Value left = Eval(node->Get(Field::kLeft));
      Value right = Eval(node->Get(Field::kRight));
      const Node* op = node->Get(Field::kOperator);
      return Binary(op == nullptr ? "?" : op->text, left, right, node->line);
    }
    case Kind::kUnary: {
      const Node* op = node->Get(Field::kOperator);
      return Unary(op == nullptr ? "-" : op->text, Eval(node->Get(Field::kArgument)), node->line);
    }
    case Kind::kNot:
      return Unary("not", Eval(node->Get(Field::kArgument)), node->line);
    case Kind::kBoolean:
      return EvalBoolean(node);
    case Kind::kComparison:
      return EvalComparison(node);
    case Kind::kConditional:
      return EvalConditional(node);
    case Kind::kLambda:
      return EvalLambda(node);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kSet:
    case Kind::kExpressionList:
    case Kind::kPatternList:
      return EvalCollection(node);
    case Kind::kDictionary:
      return EvalDictionary(node);
    case Kind::kListComprehension:
    case Kind::kSetComprehension:
    case Kind::kGenerator:
    case Kind::kDictComprehension:
      return EvalComprehension(node);
    case Kind::kAssignment: {
      const Node* right = node->Get(Field::kRight);
      if (right == nullptr) return None();  // a bare annotation
      Value value = Eval(right);
      Store(node->Get(Field::kLeft), value);
      return value;
    }
    case Kind::kNamedExpression: {
      Value value = Eval(node->Get(Field::kValue));
      Store(node->Get(Field::kName), value);
      return value;
    }
    case Kind::kAugmentedAssignment:
      ExecAugmented(node);
      return None();
    case Kind::kYield: {
      Value value = node->children.empty() ? None() : Eval(node->children[0]);
      if (absl::StartsWith(node->text, "yield from")) value = Element(value, node->line);
      frame().yielded = arena_.Join(frame().yielded, value);
      return arena_.Unknown();
    }
    case Kind::kAwait:
    case Kind::kListSplat:
      return node->children.empty() ? None() : Eval(node->children[0]);
    case Kind::kEllipsis:
      return arena_.Host();
    default:
      return arena_.Unknown();
  }
}

Value Interpreter::EvalNumber(const Node* node) {
  std::string text = absl::StrReplaceAll(node->text, {{"_", ""}});
  int64_t number = 0;
  double real = 0;
  if (node->kind == Kind::kInteger) {
    if (absl::SimpleAtoi(text, &number)) return arena_.Constant(number);
    if (absl::StartsWith(text, "0x") && absl::SimpleHexAtoi(text, &number))
      return arena_.Constant(number);
    return arena_.Int();
  }
  if (absl::SimpleAtod(text, &real)) return arena_.Constant(real);
  return arena_.Host();
}

std::optional<std::string> PlainString(const Node* node) {
  if (node->kind == Kind::kConcatenatedString) {
    std::string text;
    for (const Node* part : node->children) {
      std::optional<std::string> piece = PlainString(part);
      if (!piece.has_value()) return std::nullopt;
      text += *piece;
    }
    return text;
  }
  std::string text;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kInterpolation) return std::nullopt;
    if (child->kind != Kind::kStringContent) continue;
    if (!child->children.empty()) return std::nullopt;  // escapes
    text += std::string(child->text);
  }
  return text;
}

Value Interpreter::EvalString(const Node* node) {
  StorageSet sources;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kInterpolation && !child->children.empty()) {
      AddTo(&sources, Reachable(Eval(child->children[0])));
    }
  }
  const bool is_doc = node->parent != nullptr && node->parent->kind == Kind::kExpressionStatement;
  if (node->text.size() > kLongText && !is_doc) {
    Find(LintRule::kHardCoded, node->line, "long string",
         "a long string literal may hold data or code");
  }
  if (std::optional<std::string> text = PlainString(node)) return arena_.Constant(*text);
  return arena_.Host(sources);
}

Value Interpreter::EvalCollection(const Node* node) {
  if (node->parent != nullptr && node->parent->kind != Kind::kList &&
      node->parent->kind != Kind::kTuple && CountNumbers(node) >= kTableSize) {
    Find(LintRule::kHardCoded, node->line, "table of numbers",
         absl::StrCat("a literal of ", CountNumbers(node),
                      " numbers stands in place of a computation"));
  }
  std::vector<Value> items;
  bool exact = true;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kListSplat) {
      AddItems(Eval(child->children.empty() ? nullptr : child->children[0]), &items, &exact);
    } else {
      items.push_back(Eval(child));
    }
  }
  return arena_.List(std::move(items), exact);
}

Value Interpreter::EvalDictionary(const Node* node) {
  auto* dict = arena_.New<DictObject>();
  for (const Node* child : node->children) {
    if (child->kind == Kind::kPair) {
      Value key = Eval(child->Get(Field::kKey));
      StoreItem(dict, key, Eval(child->Get(Field::kValue)), child->line);
    } else if (child->kind == Kind::kDictSplat && !child->children.empty()) {
      Value more = Eval(child->children[0]);
      if (auto* other = AsDict(more)) {
        for (const auto& item : other->items) dict->items.push_back(item);
        dict->other = arena_.Join(dict->other, other->other);
      } else {
        dict->other = arena_.Join(dict->other, Element(more, child->line));
      }
    }
  }
  return dict;
}

void Interpreter::Clauses(const Node* node, size_t index, int depth, const Node* body,
                          std::vector<Value>* out) {
  const auto& children = node->children;
  while (index < children.size() && children[index]->kind != Kind::kForIn &&
         children[index]->kind != Kind::kIfClause) {
    ++index;
  }
  if (index >= children.size()) {
    if (body->kind == Kind::kPair) {
      Eval(body->Get(Field::kKey));
      out->push_back(Eval(body->Get(Field::kValue)));
    } else {
      out->push_back(Eval(body));
    }
    return;
  }
  const Node* clause = children[index];
  if (clause->kind == Kind::kIfClause) {
    if (!clause->children.empty()) Eval(clause->children[0]);
    ++undecided_;
    Clauses(node, index + 1, depth, body, out);
    --undecided_;
    return;
  }
  std::vector<Value> items;
  bool exact = true;
  AddItems(Eval(clause->Get(Field::kRight)), &items, &exact);
  if (!exact || items.size() > 8 || depth > 1) {
    Value element = items.empty() ? arena_.Unknown() : arena_.JoinAll(items);
    items = {element};
  }
  for (Value item : items) {
    Store(clause->Get(Field::kLeft), item);
    Clauses(node, index + 1, depth + 1, body, out);
  }
}

Value Interpreter::EvalComprehension(const Node* node) {
  const Node* body = node->Get(Field::kBody);
  if (body == nullptr) return arena_.Unknown();
  std::vector<Value> items;
  Frame inner = frame();
  inner.scope = arena_.NewScope(frame().scope);
  inner.is_forward = false;
  frames_.push_back(inner);
  Clauses(node, 0, 0, body, &items);
  Value yielded = frame().yielded;
  frames_.pop_back();
  frame().yielded = arena_.Join(frame().yielded, yielded);
  // The number of elements is only known when nothing was filtered and the input was short.
  const bool filtered = std::any_of(node->children.begin(), node->children.end(),
                                    [](const Node* c) { return c->kind == Kind::kIfClause; });
  if (node->kind == Kind::kDictComprehension) {
    auto* dict = arena_.New<DictObject>();
    dict->other = arena_.JoinAll(items);
    return dict;
  }
  return arena_.List(items, !filtered && items.size() > 1);
}

Value Interpreter::EvalLambda(const Node* node) {
  auto* function = arena_.New<FunctionObject>();
  function->node = node;
  function->name = "lambda";
  function->closure = frame().scope;
  if (const Node* parameters = node->Get(Field::kParameters)) {
    for (const Node* p : parameters->children) {
      const Node* value = p->Get(Field::kValue);
      if (value != nullptr) function->defaults.emplace_back(p, Eval(value));
    }
  }
  return function;
}

Value Interpreter::EvalConditional(const Node* node) {
  if (node->children.size() != 3) return arena_.Unknown();
  const std::optional<bool> truth = Truth(Eval(node->children[1]));
  if (truth.has_value()) return Eval(node->children[*truth ? 0 : 2]);
  ++undecided_;
  Value first = Eval(node->children[0]);
  Value second = Eval(node->children[2]);
  --undecided_;
  return arena_.Join(first, second);
}

Value Interpreter::EvalBoolean(const Node* node) {
  const Node* op = node->Get(Field::kOperator);
  const bool is_and = op != nullptr && op->text == "and";
  Value left = Eval(node->Get(Field::kLeft));
  const std::optional<bool> truth = Truth(left);
  if (truth.has_value() && *truth != is_and) return left;
  ++undecided_;
  Value right = Eval(node->Get(Field::kRight));
  --undecided_;
  return truth.has_value() ? right : arena_.Join(left, right);
}

Value Interpreter::EvalComparison(const Node* node) {
  Value result = nullptr;
  Value left = nullptr;
  absl::string_view op;
  for (const Node* child : node->children) {
    if (child->field == Field::kOperators) {
      op = child->text;
      continue;
    }
    Value right = Eval(child);
    if (left != nullptr) {
      Value compared = Compare(op, left, right, node->line);
      result = result == nullptr ? compared : arena_.Join(result, compared);
    }
    left = right;
  }
  return result == nullptr ? arena_.Host() : result;
}

Value Interpreter::EvalIndex(const Node* subscript) {
  if (subscript->kind != Kind::kSlice) return Eval(subscript);
  StorageSet sources;
  for (const Node* child : subscript->children) AddTo(&sources, Reachable(Eval(child)));
  Value slice = arena_.Host(sources);
  return slice;
}

Value Interpreter::EvalSubscript(const Node* node) {
  Value object = Eval(node->Get(Field::kValue));
  std::vector<Value> indices;
  const Node* first = nullptr;
  for (const Node* child : node->children) {
    if (child->field != Field::kSubscript) continue;
    if (first == nullptr) first = child;
    indices.push_back(EvalIndex(child));
  }
  if (indices.empty()) return arena_.Unknown();
  const bool single = indices.size() == 1;
  return GetItem(object, single ? indices[0] : arena_.List(indices), single ? first : nullptr,
                 node->line);
}

}  // namespace tritonrl::lint
