#include "verify/linter/ast.h"

#include <time.h>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tree_sitter/api.h"
#include "verify/linter/parse_memory.h"

extern "C" const TSLanguage* tree_sitter_python(void);

namespace tritonrl::lint {
namespace {

// Above these a program is refused unread: honest candidates have a few thousand nodes.
constexpr uint32_t kMaxNodes = 200000;
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

}  // namespace

// Walks tree-sitter's tree with a cursor and makes our nodes.
class Ast::Builder {
 public:
  Builder(Ast* ast, TSTree* tree)
      : ast_(ast),
        nodes_(ast->nodes_),
        grammar_(Grammar::Get()),
        has_error_(ts_node_has_error(ts_tree_root_node(tree))),
        cursor_(ts_tree_cursor_new(ts_tree_root_node(tree))) {}
  ~Builder() { ts_tree_cursor_delete(&cursor_); }

  // Makes the tree below the cursor's node; false when it is too large.
  bool Build() {
    const TSNode root = ts_tree_cursor_current_node(&cursor_);
    nodes_.reserve(std::min(kMaxNodes + 1, ts_node_descendant_count(root)));
    Make(root, grammar_.symbol(ts_node_symbol(root)).kind, Field::kNone, 0);
    return Children(0, ts_node_child_count(root), 0);
  }

 private:
  // Makes the nodes below number `parent`, which is that of the cursor and has `count` children.
  bool Children(size_t parent, uint32_t count, int depth) {
    if (depth > kMaxDepth) return false;
    if (count == 0) return true;
    ts_tree_cursor_goto_first_child(&cursor_);
    for (uint32_t i = 0; i < count; ++i) {
      if (i > 0) ts_tree_cursor_goto_next_sibling(&cursor_);
      if (!Child(parent, depth)) return false;
    }
    ts_tree_cursor_goto_parent(&cursor_);
    nodes_[parent].span = static_cast<uint32_t>(nodes_.size() - parent);
    return true;
  }

  // Makes the cursor's node, and those below it, if the linter looks at it.
  bool Child(size_t parent, int depth) {
    const TSNode raw = ts_tree_cursor_current_node(&cursor_);
    if (has_error_) NoteError(raw);
    const Symbol symbol = grammar_.symbol(ts_node_symbol(raw));
    if (symbol.punctuation) return true;
    if (ts_node_is_extra(raw) && !ts_node_is_error(raw)) return true;  // comments
    const Field field = grammar_.field(ts_tree_cursor_current_field_id(&cursor_));
    const bool is_operator = field == Field::kOperator || field == Field::kOperators;
    if (!symbol.named && !is_operator) return true;
    const size_t child = nodes_.size();
    const auto up = static_cast<uint32_t>(child - parent);
    nodes_[parent].last = up;
    Make(raw, symbol.kind, field, up);
    return nodes_.size() <= kMaxNodes && Children(child, ts_node_child_count(raw), depth + 1);
  }

  void Make(TSNode raw, Kind kind, Field field, uint32_t up) {
    Node& node = nodes_.emplace_back();
    node.kind = kind;
    node.field = field;
    node.line = static_cast<int>(ts_node_start_point(raw).row) + 1;
    node.up = up;
    const uint32_t start = ts_node_start_byte(raw);
    node.text = absl::string_view(ast_->source_).substr(start, ts_node_end_byte(raw) - start);
    if (kind == Kind::kPrintStatement || kind == Kind::kExecStatement) {
      Error(node.line, "Python 2 syntax");
    }
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
  std::vector<Node>& nodes_;
  const Grammar& grammar_;
  const bool has_error_;
  TSTreeCursor cursor_;
};

bool Ast::Parse(absl::string_view source) {
  if (IsOversized(source)) {
    too_large = true;
    return false;
  }
  source_ = std::string(source);
  const ParseMemory memory;
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
  for (const Node* child : node->children())
    absl::StrAppend(&text, text.empty() ? "" : ".", child->text);
  return text.empty() ? std::string(node->text) : text;
}

std::optional<std::string> PlainString(const Node* node) {
  std::string text;
  for (const Node* child : node->children()) {
    if (child->kind == Kind::kInterpolation) return std::nullopt;
    if (node->kind == Kind::kConcatenatedString) {
      const std::optional<std::string> piece = PlainString(child);
      if (!piece.has_value()) return std::nullopt;
      text += *piece;
    } else if (child->kind == Kind::kStringContent) {
      if (!child->children().empty()) return std::nullopt;  // escapes
      text += std::string(child->text);
    }
  }
  return text;
}

}  // namespace tritonrl::lint
