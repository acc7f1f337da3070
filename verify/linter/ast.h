// A compact syntax tree of a Python program, made once from tree-sitter's so that the interpreter
// can walk it often: punctuation and comments are gone, identifiers are numbered, fields are
// direct.
#ifndef TRITONRL_VERIFY_LINTER_AST_H_
#define TRITONRL_VERIFY_LINTER_AST_H_

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"

namespace tritonrl::lint {

// Named node types of the grammar that the linter looks at; kOther for the rest, kToken for
// operators.
enum class Kind : uint8_t {
  kOther,
  kToken,
  kError,
  kModule,
  kBlock,
  kIdentifier,
  kInteger,
  kFloat,
  kString,
  kStringContent,
  kEscapeSequence,
  kInterpolation,
  kConcatenatedString,
  kTrue,
  kFalse,
  kNone,
  kEllipsis,
  kImport,
  kImportFrom,
  kFutureImport,
  kAliasedImport,
  kWildcardImport,
  kDottedName,
  kRelativeImport,
  kPrintStatement,
  kExecStatement,
  kExpressionStatement,
  kNamedExpression,
  kAssert,
  kReturn,
  kDelete,
  kRaise,
  kPass,
  kBreak,
  kContinue,
  kIf,
  kElif,
  kElse,
  kMatch,
  kCase,
  kFor,
  kWhile,
  kTry,
  kExcept,
  kExceptGroup,
  kFinally,
  kWith,
  kWithClause,
  kWithItem,
  kFunctionDef,
  kClassDef,
  kDecorated,
  kDecorator,
  kLambda,
  kParameters,
  kDefaultParameter,
  kTypedParameter,
  kTypedDefaultParameter,
  kListSplat,
  kDictSplat,
  kListSplatPattern,
  kDictSplatPattern,
  kPositionalSeparator,
  kKeywordSeparator,
  kGlobal,
  kNonlocal,
  kArgumentList,
  kKeywordArgument,
  kExpressionList,
  kPatternList,
  kTuplePattern,
  kListPattern,
  kAsPattern,
  kAsPatternTarget,
  kNot,
  kBoolean,
  kBinary,
  kUnary,
  kComparison,
  kAssignment,
  kAugmentedAssignment,
  kYield,
  kAwait,
  kAttribute,
  kSubscript,
  kSlice,
  kCall,
  kType,
  kList,
  kSet,
  kTuple,
  kDictionary,
  kPair,
  kListComprehension,
  kDictComprehension,
  kSetComprehension,
  kGenerator,
  kParenthesized,
  kForIn,
  kIfClause,
  kConditional,
  kCount
};

enum class Field : uint8_t {
  kNone,
  kAlias,
  kAlternative,
  kArgument,
  kArguments,
  kAttribute,
  kBody,
  kCondition,
  kConsequence,
  kDefinition,
  kFunction,
  kGuard,
  kKey,
  kLeft,
  kModuleName,
  kName,
  kObject,
  kOperator,
  kOperators,
  kParameters,
  kReturnType,
  kRight,
  kSubject,
  kSubscript,
  kSuperclasses,
  kType,
  kValue,
  kCount
};

struct Node {
  Kind kind = Kind::kOther;
  Field field = Field::kNone;  // under which the parent holds it
  int line = 0;                // 1-based
  int name = -1;               // identifiers: number of the name in Ast::names
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
  int Intern(absl::string_view name);
  const std::string& NameOf(int name) const { return names_[name]; }

  int error_line = 0;
  std::string error_text;
  bool too_large = false;

 private:
  class Builder;

  std::string source_;
  std::deque<Node> nodes_;
  std::deque<std::string> names_;  // a deque, so that views of its strings stay valid
  std::unordered_map<std::string_view, int> name_numbers_;
  Node* root_ = nullptr;
};

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_AST_H_
