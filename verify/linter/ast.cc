#include "verify/linter/ast.h"

#include <time.h>

#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tree_sitter/api.h"

extern "C" const TSLanguage* tree_sitter_python(void);

namespace tritonrl::lint {
namespace {

// Above these a program is refused unread: honest candidates have a few thousand nodes.
constexpr int kMaxNodes = 200000;
constexpr int kMaxDepth = 160;
constexpr size_t kMaxBytes = 256 << 10;
constexpr size_t kMaxLine = 16 << 10;
constexpr int kMaxBrackets = 200;
// tree-sitter's recovery from syntax errors can take time that grows with the square of the input
// and worse. Programs without errors take a millisecond, or a fifth of one for each KiB.
constexpr absl::Duration kMaxParse = absl::Milliseconds(100);
constexpr absl::Duration kMaxParseOfKiB = absl::Milliseconds(1);
constexpr absl::Duration kParseSlice = absl::Milliseconds(20);

// Too much of something for an honest program, seen without parsing.
bool IsOversized(absl::string_view source) {
  if (source.size() > kMaxBytes) return true;
  size_t line = 0;
  int brackets = 0;
  for (char c : source) {
    line = c == '\n' ? 0 : line + 1;
    if (c == '(' || c == '[' || c == '{') ++brackets;
    if (brackets > 0 && (c == ')' || c == ']' || c == '}')) --brackets;
    if (line > kMaxLine || brackets > kMaxBrackets) return true;
  }
  return false;
}

absl::Duration ThreadCpu() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

// Null when the source is so broken that it takes too long.
TSTree* ParseWithinLimit(const std::string& source) {
  TSParser* parser = ts_parser_new();
  ts_parser_set_language(parser, tree_sitter_python());
  ts_parser_set_timeout_micros(parser, absl::ToInt64Microseconds(kParseSlice));
  const absl::Duration start = ThreadCpu();
  const absl::Duration limit =
      kMaxParse + static_cast<int64_t>(source.size() >> 10) * kMaxParseOfKiB;
  TSTree* tree = nullptr;
  // The parser looks at the wall clock, so it is asked to go on until the processor time is spent.
  do {
    tree = ts_parser_parse_string(parser, nullptr, source.data(),
                                  static_cast<uint32_t>(source.size()));
  } while (tree == nullptr && ThreadCpu() - start < limit);
  ts_parser_delete(parser);
  return tree;
}

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

// Grammar numbers to ours; depends on the linked grammar only.
struct Grammar {
  std::vector<Kind> kinds;
  std::vector<Field> fields;
};

Grammar MakeGrammar() {
  const TSLanguage* language = tree_sitter_python();
  std::unordered_map<std::string_view, Kind> kinds(std::begin(kKinds), std::end(kKinds));
  std::unordered_map<std::string_view, Field> fields(std::begin(kFields), std::end(kFields));
  Grammar grammar;
  for (uint32_t s = 0; s < ts_language_symbol_count(language); ++s) {
    auto it = kinds.find(ts_language_symbol_name(language, s));
    const bool named = ts_language_symbol_type(language, s) == TSSymbolTypeRegular;
    grammar.kinds.push_back(named && it != kinds.end() ? it->second : Kind::kOther);
  }
  grammar.fields.push_back(Field::kNone);
  for (uint32_t f = 1; f <= ts_language_field_count(language); ++f) {
    auto it = fields.find(ts_language_field_name_for_id(language, f));
    grammar.fields.push_back(it == fields.end() ? Field::kNone : it->second);
  }
  return grammar;
}

const Grammar& TheGrammar() {
  static const Grammar grammar = MakeGrammar();
  return grammar;
}

}  // namespace

// Walks tree-sitter's tree with a cursor and makes our nodes.
class Ast::Builder {
 public:
  Builder(Ast* ast, TSTree* tree)
      : ast_(ast),
        has_error_(ts_node_has_error(ts_tree_root_node(tree))),
        cursor_(ts_tree_cursor_new(ts_tree_root_node(tree))) {}
  ~Builder() { ts_tree_cursor_delete(&cursor_); }

  // Makes the tree below the cursor's node; false when it is too large.
  bool Build() {
    ast_->root_ = Make(ts_tree_cursor_current_node(&cursor_), Field::kNone, nullptr);
    return Children(ast_->root_, 0);
  }

 private:
  bool Children(Node* node, int depth) {
    if (depth > kMaxDepth) return false;
    if (!ts_tree_cursor_goto_first_child(&cursor_)) return true;
    do {
      TSNode raw = ts_tree_cursor_current_node(&cursor_);
      const Field field = TheGrammar().fields[ts_tree_cursor_current_field_id(&cursor_)];
      const bool is_operator = field == Field::kOperator || field == Field::kOperators;
      if (has_error_) NoteError(raw);
      if (ts_node_is_extra(raw) && !ts_node_is_error(raw)) continue;  // comments
      if (!ts_node_is_named(raw) && !is_operator) continue;
      Node* child = Make(raw, field, node);
      node->children.push_back(child);
      if (ast_->nodes_.size() > kMaxNodes || !Children(child, depth + 1)) return false;
    } while (ts_tree_cursor_goto_next_sibling(&cursor_));
    ts_tree_cursor_goto_parent(&cursor_);
    return true;
  }

  Node* Make(TSNode raw, Field field, Node* parent) {
    Node& node = ast_->nodes_.emplace_back();
    const TSSymbol symbol = ts_node_symbol(raw);
    node.kind = ts_node_is_named(raw) ? KindOf(symbol) : Kind::kToken;
    node.field = field;
    node.line = static_cast<int>(ts_node_start_point(raw).row) + 1;
    node.parent = parent;
    const uint32_t start = ts_node_start_byte(raw);
    node.text = absl::string_view(ast_->source_).substr(start, ts_node_end_byte(raw) - start);
    if (node.kind == Kind::kPrintStatement || node.kind == Kind::kExecStatement) {
      Error(node.line, "Python 2 syntax");
    }
    return &node;
  }

  static Kind KindOf(TSSymbol symbol) {
    const auto& kinds = TheGrammar().kinds;
    return symbol < kinds.size() ? kinds[symbol] : Kind::kOther;
  }

  void NoteError(TSNode raw) {
    if (ts_node_is_error(raw) || ts_node_is_missing(raw)) {
      Error(static_cast<int>(ts_node_start_point(raw).row) + 1, "syntax error");
    }
  }

  void Error(int line, const char* text) {
    if (ast_->error_line != 0) return;
    ast_->error_line = line;
    ast_->error_text = text;
  }

  Ast* ast_;
  const bool has_error_;
  TSTreeCursor cursor_;
};

bool Ast::Parse(absl::string_view source) {
  if (IsOversized(source)) {
    too_large = true;
    return false;
  }
  source_ = std::string(source);
  TSTree* tree = ParseWithinLimit(source_);
  if (tree == nullptr) {
    error_line = 1;
    error_text = "too broken to be parsed";
    return false;
  }
  {
    Builder builder(this, tree);
    too_large = !builder.Build();
  }
  const bool has_error = ts_node_has_error(ts_tree_root_node(tree));
  ts_tree_delete(tree);
  if (too_large) return false;
  if (has_error && error_line == 0) {
    error_line = 1;
    error_text = "syntax error";
  }
  return error_line == 0;
}

std::string DottedText(const Node* node) {
  std::string text;
  for (const Node* child : node->children)
    absl::StrAppend(&text, text.empty() ? "" : ".", child->text);
  return text.empty() ? std::string(node->text) : text;
}

std::optional<std::string> PlainString(const Node* node) {
  std::string text;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kInterpolation) return std::nullopt;
    if (node->kind == Kind::kConcatenatedString) {
      const std::optional<std::string> piece = PlainString(child);
      if (!piece.has_value()) return std::nullopt;
      text += *piece;
    } else if (child->kind == Kind::kStringContent) {
      if (!child->children.empty()) return std::nullopt;  // escapes
      text += std::string(child->text);
    }
  }
  return text;
}

}  // namespace tritonrl::lint
