// The part of tree-sitter's grammar of Python that the linter knows: its symbols and fields, by our
// names.
#ifndef TRITONRL_VERIFY_LINTER_GRAMMAR_H_
#define TRITONRL_VERIFY_LINTER_GRAMMAR_H_

#include <cstdint>
#include <vector>

#include "tree_sitter/api.h"

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

// What a node of tree-sitter is to the linter.
struct Symbol {
  Kind kind = Kind::kOther;
  bool named = true;
  bool punctuation = false;  // a token that never stands in a field of operators
};

// By tree-sitter's numbers; depends on the linked grammar only.
class Grammar {
 public:
  // The one of the linked grammar.
  static const Grammar& Get();

  // Nodes for errors have a number of their own and are named.
  Symbol symbol(TSSymbol number) const {
    return number < symbols_.size() ? symbols_[number] : Symbol();
  }
  Field field(TSFieldId number) const { return fields_[number]; }

 private:
  Grammar();

  std::vector<Symbol> symbols_;
  std::vector<Field> fields_;
};

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_GRAMMAR_H_
