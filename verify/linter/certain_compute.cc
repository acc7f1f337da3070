#include "verify/linter/certain_compute.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "verify/linter/names.h"
#include "verify/linter/structure.h"

namespace tritonrl::lint {
namespace {

// True for a block that may end forward: functions defined in it do not.
bool MayReturn(const Node* node) {
  if (node->kind == Kind::kFunctionDef || node->kind == Kind::kLambda) return false;
  if (node->kind == Kind::kReturn) return true;
  for (const Node* child : node->children()) {
    if (MayReturn(child)) return true;
  }
  return false;
}

bool Holds(const Node* node, Kind kind) {
  return AnyBelow(node, [kind](const Node* below) { return below->kind == kind; });
}

const Node* Inner(const Node* node) {
  while (node->kind == Kind::kParenthesized && node->children().size() == 1)
    node = node->children()[0];
  return node;
}

// The name of a parameter; empty for separators.
absl::string_view ParameterName(const Node* parameter) {
  if (parameter->kind == Kind::kIdentifier) return parameter->text;
  if (const Node* name = parameter->Get(Field::kName); name != nullptr) return name->text;
  for (const Node* child : parameter->children()) {
    if (child->kind == Kind::kIdentifier) return child->text;
  }
  return "";
}

std::vector<const Node*> Methods(const Node* model, absl::string_view method) {
  std::vector<const Node*> found;
  const Node* body = model->Get(Field::kBody);
  if (body == nullptr) return found;
  for (const Node* statement : body->children()) {
    const Node* name = statement->Get(Field::kName);
    if (statement->kind == Kind::kFunctionDef && name != nullptr && name->text == method)
      found.push_back(statement);
  }
  return found;
}

class Forward {
 public:
  Forward(const Program& program, const Node* model, LintResult* result)
      : program_(program), result_(result) {
    for (const Node* init : Methods(model, "__init__")) ReadLayers(init);
  }

  void Check(const Node* forward) {
    const Node* parameters = forward->Get(Field::kParameters);
    const Node* body = forward->Get(Field::kBody);
    if (parameters == nullptr || body == nullptr || parameters->children().empty()) return;
    const Node* self = parameters->children().front();
    self_ = ParameterName(self);
    for (const Node* parameter : parameters->children()) {
      if (parameter == self) continue;
      const absl::string_view name = ParameterName(parameter);
      if (parameter->kind != Kind::kOther) ++inputs_;  // no separator
      const bool plain =
          parameter->kind == Kind::kIdentifier || parameter->kind == Kind::kTypedParameter;
      if (plain && !name.empty()) data_.insert(name);
    }
    Block(body);
  }

 private:
  // Remembers `self.fc = nn.Linear(...)` where nothing else touches `fc`.
  void ReadLayers(const Node* node) {
    if (node->kind == Kind::kAssignment) {
      const Node* left = node->Get(Field::kLeft);
      const Node* right = node->Get(Field::kRight);
      if (left != nullptr && right != nullptr && left->kind == Kind::kAttribute &&
          right->kind == Kind::kCall && left->Get(Field::kAttribute) != nullptr) {
        const absl::string_view name = left->Get(Field::kAttribute)->text;
        const std::string made = program_.FullName(right->Get(Field::kFunction));
        if (absl::StartsWith(made, "torch.nn.") && program_.ChangesOf(name) == 1 && !Defines(name))
          layers_.emplace(name, made);
      }
    }
    for (const Node* child : node->children()) ReadLayers(child);
  }

  // True if a function or class, or a variable, has the name of a layer.
  bool Defines(absl::string_view name) const {
    return program_.Binds(name) || absl::c_any_of(program_.functions(), [&](const Node* function) {
             const Node* defined = function->Get(Field::kName);
             return defined != nullptr && defined->text == name;
           });
  }

  // False once forward may have returned.
  bool Block(const Node* block) {
    for (const Node* statement : block->children()) {
      if (found_ || !Statement(statement)) return false;
    }
    return true;
  }

  bool Statement(const Node* node) {
    ForgetNamed(node);
    switch (node->kind) {
      case Kind::kExpressionStatement:
        for (const Node* child : node->children()) {
          child->kind == Kind::kAssignment || child->kind == Kind::kAugmentedAssignment
              ? Assignment(child)
              : Expression(child);
        }
        return true;
      case Kind::kReturn:
        for (const Node* child : node->children()) Expression(child);
        return false;
      case Kind::kIf:
      case Kind::kWhile:
        if (const Node* condition = node->Get(Field::kCondition)) Expression(condition);
        break;
      case Kind::kFor:
        if (const Node* items = node->Get(Field::kRight)) Expression(items);
        break;
      case Kind::kWith:
        if (IsTorchs(node)) {
          const Node* body = node->Get(Field::kBody);
          return body == nullptr || Block(body);
        }
        break;
      default:
        break;
    }
    Forget(node);
    return !MayReturn(node);
  }

  // `with torch.no_grad():` and the like, which runs its block once.
  bool IsTorchs(const Node* with) const {
    for (const Node* clause : with->children()) {
      if (clause->kind != Kind::kWithClause) continue;
      for (const Node* item : clause->children()) {
        const Node* value = item->Get(Field::kValue);
        if (value == nullptr || value->kind != Kind::kCall ||
            !absl::StartsWith(program_.FullName(value->Get(Field::kFunction)), "torch."))
          return false;
      }
    }
    return true;
  }

  void Assignment(const Node* node) {
    const Node* left = node->Get(Field::kLeft);
    const Node* right = node->Get(Field::kRight);
    if (left == nullptr || right == nullptr) return;
    if (right->kind == Kind::kAssignment) {
      Assignment(right);
    } else {
      Expression(right);
    }
    const bool keeps =
        node->kind == Kind::kAssignment && left->kind == Kind::kIdentifier && IsData(right);
    Forget(node);
    if (keeps) data_.insert(left->text);
  }

  void ForgetNamed(const Node* node) {
    if (node->kind == Kind::kNamedExpression && node->Get(Field::kName) != nullptr)
      ForgetNames(node->Get(Field::kName));
    for (const Node* child : node->children()) ForgetNamed(child);
  }

  // Names that a statement may change are no inputs any more.
  void Forget(const Node* node) {
    const bool changes = node->kind == Kind::kAssignment ||
                         node->kind == Kind::kAugmentedAssignment || node->kind == Kind::kFor ||
                         node->kind == Kind::kNamedExpression ||
                         node->kind == Kind::kAsPatternTarget || node->kind == Kind::kDelete ||
                         node->kind == Kind::kCase || node->kind == Kind::kFunctionDef ||
                         node->kind == Kind::kClassDef || node->kind == Kind::kImport ||
                         node->kind == Kind::kImportFrom;
    if (changes)
      ForgetNames(node->Get(Field::kLeft) != nullptr   ? node->Get(Field::kLeft)
                  : node->Get(Field::kName) != nullptr ? node->Get(Field::kName)
                                                       : node);
    for (const Node* child : node->children()) Forget(child);
  }

  void ForgetNames(const Node* node) {
    if (node->kind == Kind::kIdentifier && node->field != Field::kAttribute)
      data_.erase(node->text);
    if (node->kind == Kind::kAttribute || node->kind == Kind::kSubscript) return;
    for (const Node* child : node->children()) ForgetNames(child);
  }

  // An input, or as large as one: views, arithmetic, an empty tensor for the result.
  bool IsData(const Node* node) const {
    node = Inner(node);
    switch (node->kind) {
      case Kind::kIdentifier:
        return data_.contains(node->text);
      case Kind::kBinary: {
        const Node* op = node->Get(Field::kOperator);
        return op != nullptr && op->text != "@" &&
               absl::c_any_of(node->children(),
                              [&](auto* child) { return child != op && IsData(child); });
      }
      case Kind::kUnary:
        return !node->children().empty() && IsData(node->children().back());
      case Kind::kAttribute: {
        const Node* name = node->Get(Field::kAttribute);
        return name != nullptr &&
               (name->text == "T" || name->text == "mT" || name->text == "data") &&
               IsData(node->Get(Field::kObject));
      }
      case Kind::kCall: {
        const Node* function = node->Get(Field::kFunction);
        if (function == nullptr) return false;
        if (program_.FullName(function) == "torch.empty_like") return TakesData(node);
        const Node* name = function->Get(Field::kAttribute);
        return function->kind == Kind::kAttribute && name != nullptr && Is(kSameSize, name->text) &&
               IsData(function->Get(Field::kObject));
      }
      default:
        return false;
    }
  }

  bool TakesData(const Node* call) const {
    const Node* arguments = call->Get(Field::kArguments);
    if (arguments == nullptr) return false;
    return absl::c_any_of(arguments->children(), [&](const Node* argument) {
      const Node* name = argument->Get(Field::kName);
      if (argument->kind != Kind::kKeywordArgument) return IsData(argument);
      return name != nullptr && name->text == "input" && argument->Get(Field::kValue) != nullptr &&
             IsData(argument->Get(Field::kValue));
    });
  }

  // Walks what an expression certainly evaluates.
  void Expression(const Node* node) {
    switch (node->kind) {
      case Kind::kLambda:
      case Kind::kListComprehension:
      case Kind::kSetComprehension:
      case Kind::kDictComprehension:
      case Kind::kGenerator:
        return;
      case Kind::kConditional:  // value if condition else other: children in this order
        if (node->children().size() > 1) Expression(node->children()[1]);
        return;
      case Kind::kBoolean:
        if (!node->children().empty()) Expression(node->children()[0]);
        return;
      case Kind::kComparison:  // a < b < c looks at c only if a < b
        for (size_t i = 0; i < node->children().size() && i < 3; ++i)
          Expression(node->children()[i]);
        return;
      default:
        for (const Node* child : node->children()) Expression(child);
    }
    if (node->kind == Kind::kCall) Call(node);
    if (node->kind == Kind::kBinary) {
      const Node* op = node->Get(Field::kOperator);
      if (op != nullptr && op->text == "@" &&
          (IsData(node->children().front()) || IsData(node->children().back())))
        Add(node->line, "@");
    }
  }

  void Call(const Node* call) {
    const Node* function = call->Get(Field::kFunction);
    if (function == nullptr) return;
    const std::string full = program_.FullName(function);
    if (!full.empty()) {
      if (Computes(full) && TakesData(call)) Add(call->line, full);
      return;
    }
    const Node* object = function->Get(Field::kObject);
    const Node* name = function->Get(Field::kAttribute);
    if (function->kind != Kind::kAttribute || object == nullptr || name == nullptr) return;
    if (object->text == self_) {
      auto layer = layers_.find(name->text);
      if (layer != layers_.end() && ComputesLayer(layer->second) && TakesData(call))
        Add(call->line, layer->second);
    } else if ((Is(kWork, name->text) || (inputs_ == 1 && Is(kElementwise, name->text))) &&
               IsData(object)) {
      Add(call->line, std::string(name->text));
    }
  }

  bool Computes(absl::string_view full) const {
    for (absl::string_view module :
         {"torch.nn.functional.", "torch.ops.aten.", "torch._C._nn.", "torch."}) {
      absl::string_view name = full;
      if (!absl::ConsumePrefix(&name, module)) continue;
      return Is(kWork, name) || (inputs_ == 1 && Is(kElementwise, name));
    }
    return false;
  }

  bool ComputesLayer(absl::string_view full) const {
    const absl::string_view name = full.substr(full.rfind('.') + 1);
    return Is(kWorkModule, name) || (inputs_ == 1 && Is(kElementwiseModule, name));
  }

  void Add(int line, const std::string& name) {
    if (std::exchange(found_, true)) return;
    result_->findings.push_back(
        {LintRule::kTorchCompute, line, name,
         absl::StrCat("'", name, "' computes on forward's input outside the Triton kernels")});
  }

  const Program& program_;
  LintResult* result_;
  absl::flat_hash_map<absl::string_view, std::string> layers_;  // by the model's attribute
  absl::flat_hash_set<absl::string_view> data_;                 // names of inputs and their like
  absl::string_view self_;
  int inputs_ = 0;
  bool found_ = false;
};

// True if nothing in the program can make forward, or what it calls by torch's names, run otherwise
// than it reads.
bool MeansWhatItSays(const Program& program, const Node* model) {
  const Node* bases = model->Get(Field::kSuperclasses);
  if (bases != nullptr && Holds(bases, Kind::kKeywordArgument)) return false;  // a metaclass
  if (program.MentionsAny(kOwnsCall) || program.Patches("torch")) return false;
  for (const Import& import : program.imports()) {
    if (import.bound.empty() && import.name != "math" && import.name != "typing" &&
        import.name != "triton.language")
      return false;
  }
  if (program.ChangesOf("forward") > 0) return false;
  // forward may stand as a definition and as an attribute, but not in an assignment.
  return absl::c_all_of(program.identifiers(), [](const Node* identifier) {
    return identifier->text != "forward" || identifier->field == Field::kAttribute ||
           identifier->parent()->kind == Kind::kFunctionDef;
  });
}

}  // namespace

void FindCertainCompute(const Program& program, LintResult* result) {
  const Node* model = OnlyModel(program);
  if (model == nullptr || !MeansWhatItSays(program, model)) return;
  const std::vector<const Node*> forward = Methods(model, "forward");
  int definitions = 0;
  for (const Node* function : program.functions()) {
    const Node* name = function->Get(Field::kName);
    const Node* around = function->parent();
    while (around != nullptr && around != model) around = around->parent();
    definitions += around == model && name != nullptr && name->text == "forward";
  }
  if (forward.size() != 1 || definitions != 1 || absl::StartsWith(forward[0]->text, "async") ||
      Holds(forward[0], Kind::kYield) || Holds(forward[0], Kind::kNonlocal))
    return;
  Forward(program, model, result).Check(forward[0]);
}

}  // namespace tritonrl::lint
