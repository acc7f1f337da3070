// A compact syntax tree of a Python program, made once from tree-sitter's: punctuation and comments
// are gone, fields are direct.
#ifndef TRITONRL_VERIFY_LINTER_AST_H_
#define TRITONRL_VERIFY_LINTER_AST_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tritonrl::lint {

// Named node types of the grammar that the linter looks at; kOther for the rest, kToken for
// operators.
enum class Kind : uint8_t {
  kOther,
  kToken,
  kModule,
  kBlock,
  kIdentifier,
  kString,
  kStringContent,
  kInterpolation,
  kConcatenatedString,
  kImport,
  kImportFrom,
  kAliasedImport,
  kWildcardImport,
  kDottedName,
  kPrintStatement,
  kExecStatement,
  kExpressionStatement,
  kNamedExpression,
  kReturn,
  kDelete,
  kIf,
  kCase,
  kFor,
  kWhile,
  kWith,
  kWithClause,
  kFunctionDef,
  kClassDef,
  kDecorated,
  kDecorator,
  kLambda,
  kParameters,
  kDefaultParameter,
  kTypedParameter,
  kTypedDefaultParameter,
  kListSplatPattern,
  kDictSplatPattern,
  kGlobal,
  kNonlocal,
  kArgumentList,
  kKeywordArgument,
  kAsPatternTarget,
  kBoolean,
  kBinary,
  kUnary,
  kComparison,
  kAssignment,
  kAugmentedAssignment,
  kYield,
  kAttribute,
  kSubscript,
  kCall,
  kListComprehension,
  kDictComprehension,
  kSetComprehension,
  kGenerator,
  kParenthesized,
  kForIn,
  kConditional,
};

enum class Field : uint8_t {
  kNone,
  kAlias,
  kArguments,
  kAttribute,
  kBody,
  kCondition,
  kConsequence,
  kFunction,
  kLeft,
  kModuleName,
  kName,
  kObject,
  kOperator,
  kOperators,
  kParameters,
  kRight,
  kSuperclasses,
  kValue,
};

struct Node {
  Kind kind = Kind::kOther;
  Field field = Field::kNone;  // under which the parent holds it
  int line = 0;                // 1-based
  absl::string_view text;
  Node* parent = nullptr;
  std::vector<Node*> children;

  // The first child in a field, or null.
  const Node* Get(Field f) const {
    for (const Node* child : children) {
      if (child->field == f) return child;
    }
    return nullptr;
  }
};

// Owns the text and the nodes; not movable, since nodes point into the text.
class Ast {
 public:
  Ast() = default;
  Ast(const Ast&) = delete;
  Ast& operator=(const Ast&) = delete;

  // Parses. False when the text is not Python (error_line, error_text are set) or too large
  // (too_large is set).
  bool Parse(absl::string_view source);

  const Node* root() const { return root_; }

  int error_line = 0;
  std::string error_text;
  bool too_large = false;

 private:
  class Builder;

  std::string source_;
  std::deque<Node> nodes_;
  Node* root_ = nullptr;
};

// True if `holds` is true of the node or one below it.
template <typename Predicate>
bool AnyBelow(const Node* node, const Predicate& holds) {
  if (holds(node)) return true;
  for (const Node* child : node->children) {
    if (AnyBelow(child, holds)) return true;
  }
  return false;
}

// "torch.nn" of a dotted name, whatever stands between its parts.
std::string DottedText(const Node* node);
// The text of a literal without escapes and interpolations; nullopt for others.
std::optional<std::string> PlainString(const Node* node);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_AST_H_
