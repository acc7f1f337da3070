#include "verify/linter/grammar.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>

extern "C" const TSLanguage* tree_sitter_python(void);

namespace tritonrl::lint {
namespace {

constexpr std::pair<std::string_view, Kind> kKinds[] = {
    {"module", Kind::kModule},
    {"block", Kind::kBlock},
    {"identifier", Kind::kIdentifier},
    {"string", Kind::kString},
    {"string_content", Kind::kStringContent},
    {"interpolation", Kind::kInterpolation},
    {"concatenated_string", Kind::kConcatenatedString},
    {"import_statement", Kind::kImport},
    {"import_from_statement", Kind::kImportFrom},
    {"aliased_import", Kind::kAliasedImport},
    {"wildcard_import", Kind::kWildcardImport},
    {"dotted_name", Kind::kDottedName},
    {"print_statement", Kind::kPrintStatement},
    {"exec_statement", Kind::kExecStatement},
    {"expression_statement", Kind::kExpressionStatement},
    {"named_expression", Kind::kNamedExpression},
    {"return_statement", Kind::kReturn},
    {"delete_statement", Kind::kDelete},
    {"if_statement", Kind::kIf},
    {"case_clause", Kind::kCase},
    {"for_statement", Kind::kFor},
    {"while_statement", Kind::kWhile},
    {"with_statement", Kind::kWith},
    {"with_clause", Kind::kWithClause},
    {"function_definition", Kind::kFunctionDef},
    {"class_definition", Kind::kClassDef},
    {"decorated_definition", Kind::kDecorated},
    {"decorator", Kind::kDecorator},
    {"lambda", Kind::kLambda},
    {"parameters", Kind::kParameters},
    {"lambda_parameters", Kind::kParameters},
    {"default_parameter", Kind::kDefaultParameter},
    {"typed_parameter", Kind::kTypedParameter},
    {"typed_default_parameter", Kind::kTypedDefaultParameter},
    {"list_splat_pattern", Kind::kListSplatPattern},
    {"dictionary_splat_pattern", Kind::kDictSplatPattern},
    {"global_statement", Kind::kGlobal},
    {"nonlocal_statement", Kind::kNonlocal},
    {"argument_list", Kind::kArgumentList},
    {"keyword_argument", Kind::kKeywordArgument},
    {"as_pattern_target", Kind::kAsPatternTarget},
    {"boolean_operator", Kind::kBoolean},
    {"binary_operator", Kind::kBinary},
    {"unary_operator", Kind::kUnary},
    {"comparison_operator", Kind::kComparison},
    {"assignment", Kind::kAssignment},
    {"augmented_assignment", Kind::kAugmentedAssignment},
    {"yield", Kind::kYield},
    {"attribute", Kind::kAttribute},
    {"subscript", Kind::kSubscript},
    {"call", Kind::kCall},
    {"list_comprehension", Kind::kListComprehension},
    {"dictionary_comprehension", Kind::kDictComprehension},
    {"set_comprehension", Kind::kSetComprehension},
    {"generator_expression", Kind::kGenerator},
    {"parenthesized_expression", Kind::kParenthesized},
    {"for_in_clause", Kind::kForIn},
    {"conditional_expression", Kind::kConditional},
};

constexpr std::pair<std::string_view, Field> kFields[] = {
    {"alias", Field::kAlias},
    {"arguments", Field::kArguments},
    {"attribute", Field::kAttribute},
    {"body", Field::kBody},
    {"condition", Field::kCondition},
    {"consequence", Field::kConsequence},
    {"function", Field::kFunction},
    {"left", Field::kLeft},
    {"module_name", Field::kModuleName},
    {"name", Field::kName},
    {"object", Field::kObject},
    {"operator", Field::kOperator},
    {"operators", Field::kOperators},
    {"parameters", Field::kParameters},
    {"right", Field::kRight},
    {"superclasses", Field::kSuperclasses},
    {"value", Field::kValue},
};

constexpr std::string_view kPunctuation[] = {"(", ")", "[", "]", "{", "}", ",", ":", ".", "="};

}  // namespace

Grammar::Grammar() {
  const TSLanguage* language = tree_sitter_python();
  const std::unordered_map<std::string_view, Kind> kinds(std::begin(kKinds), std::end(kKinds));
  const std::unordered_map<std::string_view, Field> fields(std::begin(kFields), std::end(kFields));
  for (uint32_t s = 0; s < ts_language_symbol_count(language); ++s) {
    const std::string_view name = ts_language_symbol_name(language, static_cast<TSSymbol>(s));
    Symbol& symbol = symbols_.emplace_back();
    symbol.named =
        ts_language_symbol_type(language, static_cast<TSSymbol>(s)) == TSSymbolTypeRegular;
    if (symbol.named) {
      const auto it = kinds.find(name);
      symbol.kind = it == kinds.end() ? Kind::kOther : it->second;
    } else {
      symbol.kind = Kind::kToken;
      symbol.punctuation = std::find(std::begin(kPunctuation), std::end(kPunctuation), name) !=
                           std::end(kPunctuation);
    }
  }
  fields_.push_back(Field::kNone);
  for (uint32_t f = 1; f <= ts_language_field_count(language); ++f) {
    const auto it = fields.find(ts_language_field_name_for_id(language, static_cast<TSFieldId>(f)));
    fields_.push_back(it == fields.end() ? Field::kNone : it->second);
  }
}

const Grammar& Grammar::Get() {
  static const Grammar grammar;
  return grammar;
}

}  // namespace tritonrl::lint
