// Literals, displays, comprehensions and lambdas.
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

int CountNumbers(const Node* node) {
  int count = 0;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kInteger || child->kind == Kind::kFloat) ++count;
    if (child->kind == Kind::kUnary) count += CountNumbers(child);
    if (child->kind == Kind::kList || child->kind == Kind::kTuple) count += CountNumbers(child);
  }
  return count;
}

// True for a generator expression that is the argument of a call, other than of one that keeps it.
bool IsUsedUpAtOnce(const Node* node) {
  const Node* call = node->parent;
  if (call != nullptr && call->kind == Kind::kArgumentList) call = call->parent;
  if (call == nullptr || call->kind != Kind::kCall) return false;
  const Node* function = call->Get(Field::kFunction);
  const absl::string_view text = function == nullptr ? absl::string_view() : function->text;
  if (absl::StartsWith(text, "nn.") || absl::StartsWith(text, "torch.") ||
      absl::EndsWith(text, ".join") || absl::StartsWith(text, "np."))
    return true;
  for (absl::string_view name : {"sum", "all", "any", "list", "tuple", "set", "dict", "max", "min",
                                 "sorted", "frozenset", "len", "next"}) {
    if (text == name) return true;
  }
  return false;
}

}  // namespace

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
  return absl::StrReplaceAll(text, {{"\r\n", "\n"}});  // as Python reads it
}

Value Interpreter::EvalLiteral(const Node* node) {
  switch (node->kind) {
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
    case Kind::kEllipsis:
      return arena_.Host();
    default:
      return arena_.Unknown();
  }
}

Value Interpreter::EvalNumber(const Node* node) {
  budget_.Spend(node->text.size() / 16);
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

Value Interpreter::EvalString(const Node* node) {
  budget_.Spend(node->text.size() / 16);
  StorageSet sources;
  std::vector<const Node*> pending(node->children.begin(), node->children.end());
  while (!pending.empty()) {  // interpolations, also those inside format specifiers
    const Node* part = pending.back();
    pending.pop_back();
    // Inside a format specifier the parser has another name for one.
    const bool nested = part->kind == Kind::kOther && absl::StartsWith(part->text, "{");
    if ((part->kind == Kind::kInterpolation || nested) && !part->children.empty()) {
      AddTo(&sources, Reachable(Eval(part->children[0])));
      pending.insert(pending.end(), part->children.begin() + 1, part->children.end());
    } else {
      pending.insert(pending.end(), part->children.begin(), part->children.end());
    }
  }
  const bool is_doc = node->parent != nullptr && node->parent->kind == Kind::kExpressionStatement;
  if (node->text.size() > kLongText && !is_doc) {
    Find(LintRule::kHardCoded, node->line, "long string",
         "a long string literal may hold data or code");
  }
  const absl::string_view prefix = node->text.substr(0, node->text.find_first_of("'\""));
  if (absl::StrContains(prefix, "b") || absl::StrContains(prefix, "B"))
    return arena_.Host(sources);  // bytes equal no string
  if (std::optional<std::string> text = PlainString(node)) return arena_.Constant(*text);
  Value made = arena_.Host(sources);
  const Node* first = node->children.empty() ? nullptr : node->children[0];
  for (const Node* child : node->children) {  // behind the opening quote
    if (child->kind != Kind::kOther) {
      first = child;
      break;
    }
  }
  if (first != nullptr && first->kind == Kind::kStringContent && first->children.empty() &&
      node->kind == Kind::kString)
    AsHost(made)->prefix = std::string(first->text);
  return made;
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
  return arena_.List(std::move(items), exact && node->kind != Kind::kSet);  // equal ones are one
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
        budget_.Spend(4 * other->items.size());
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
                          std::vector<Value>* out, bool* counted) {
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
    Clauses(node, index + 1, depth, body, out, counted);
    --undecided_;
    return;
  }
  std::vector<Value> items;
  bool exact = true;
  AddItems(Eval(clause->Get(Field::kRight)), &items, &exact);
  const bool many = !exact || items.size() > 8 || depth > 1;
  *counted = *counted && !many;
  if (many) {
    Value element = items.empty() ? arena_.Unknown() : arena_.JoinAll(items);
    items = {element};
  }
  loops_ += many;
  for (Value item : items) {
    Store(clause->Get(Field::kLeft), item);
    Clauses(node, index + 1, depth + 1, body, out, counted);
  }
  loops_ -= many;
}

Value Interpreter::EvalComprehension(const Node* node) {
  const Node* body = node->Get(Field::kBody);
  if (body == nullptr) return arena_.Unknown();
  if (node->kind == Kind::kGenerator && !IsUsedUpAtOnce(node)) {
    // It runs when it is asked for elements, with what its names mean then.
    const auto known = std::find_if(hidden_.begin(), hidden_.end(),
                                    [node](const Hidden& h) { return h.comprehension == node; });
    if (phase_ == Phase::kForward && known != hidden_.end()) {
      known->scope = frame().scope;
    } else if (hidden_.size() >= kMostHidden) {
      TooHidden(node->line);
    } else {
      hidden_.push_back({.line = node->line, .comprehension = node, .scope = frame().scope});
    }
  }
  std::vector<Value> items;
  Frame inner;
  inner.function = frame().function;
  inner.self = frame().self;
  inner.callables = frame().callables;
  inner.scope = arena_.NewScope(frame().scope);
  inner.scope->is_comprehension = true;
  inner.is_forward = false;
  frames_.push_back(inner);
  bool counted = node->kind == Kind::kListComprehension || node->kind == Kind::kGenerator;
  Clauses(node, 0, 0, body, &items, &counted);
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
  counted = counted && !filtered && items.size() > 1;
  if (node->kind == Kind::kGenerator) return Iterator(std::move(items), counted, {});
  return arena_.List(std::move(items), counted);
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

}  // namespace tritonrl::lint
