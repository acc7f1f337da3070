#include "base/python_syntax.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tree_sitter/api.h"

extern "C" const TSLanguage* tree_sitter_python(void);

namespace tritonrl {

struct PythonTree::Impl {
  TSTree* tree = nullptr;
  ~Impl() {
    if (tree != nullptr) ts_tree_delete(tree);
  }
};

namespace {

// PythonNode::Raw mirrors TSNode, so that python_syntax.h needs no tree-sitter header.
template <typename Raw>
TSNode ToNode(const Raw& raw) {
  static_assert(sizeof(Raw) == sizeof(TSNode) && std::is_trivially_copyable_v<TSNode>);
  TSNode node;
  std::memcpy(&node, &raw, sizeof(node));
  return node;
}

template <typename Raw>
Raw FromNode(const TSNode& node) {
  Raw raw;
  std::memcpy(static_cast<void*>(&raw), &node, sizeof(node));
  return raw;
}

}  // namespace

absl::string_view PythonNode::type() const {
  return null() ? absl::string_view() : absl::string_view(ts_node_type(ToNode(raw_)));
}

absl::string_view PythonNode::text() const {
  if (null()) return {};
  return absl::string_view(tree_->source()).substr(start_byte(), end_byte() - start_byte());
}

bool PythonNode::named() const { return !null() && ts_node_is_named(ToNode(raw_)); }
bool PythonNode::has_error() const { return !null() && ts_node_has_error(ToNode(raw_)); }
bool PythonNode::is_error() const {
  return !null() && (ts_node_is_error(ToNode(raw_)) || ts_node_is_missing(ToNode(raw_)));
}
int PythonNode::line() const {
  return null() ? 0 : static_cast<int>(ts_node_start_point(ToNode(raw_)).row) + 1;
}
int PythonNode::column() const {
  return null() ? 0 : static_cast<int>(ts_node_start_point(ToNode(raw_)).column) + 1;
}
int PythonNode::end_line() const {
  if (null()) return 0;
  TSPoint end = ts_node_end_point(ToNode(raw_));
  // A node that ends at column 0 ends with the line break of the previous line.
  bool behind_break = end.column == 0 && end_byte() > start_byte();
  return static_cast<int>(end.row) + (behind_break ? 0 : 1);
}
size_t PythonNode::start_byte() const { return null() ? 0 : ts_node_start_byte(ToNode(raw_)); }
size_t PythonNode::end_byte() const { return null() ? 0 : ts_node_end_byte(ToNode(raw_)); }

PythonNode PythonNode::parent() const {
  if (null()) return {};
  TSNode node = ts_node_parent(ToNode(raw_));
  return ts_node_is_null(node) ? PythonNode() : PythonNode(tree_, FromNode<Raw>(node));
}

int PythonNode::child_count() const {
  return null() ? 0 : static_cast<int>(ts_node_child_count(ToNode(raw_)));
}

PythonNode PythonNode::child(int index) const {
  if (index < 0 || index >= child_count()) return {};
  return PythonNode(tree_, FromNode<Raw>(ts_node_child(ToNode(raw_), index)));
}

std::vector<PythonNode> PythonNode::children() const {
  std::vector<PythonNode> nodes;
  if (null()) return nodes;
  // With a cursor the time is linear in the number of children, with ts_node_child(i) quadratic.
  TSTreeCursor cursor = ts_tree_cursor_new(ToNode(raw_));
  if (ts_tree_cursor_goto_first_child(&cursor)) {
    do {
      nodes.push_back(PythonNode(tree_, FromNode<Raw>(ts_tree_cursor_current_node(&cursor))));
    } while (ts_tree_cursor_goto_next_sibling(&cursor));
  }
  ts_tree_cursor_delete(&cursor);
  return nodes;
}

std::vector<PythonNode> PythonNode::named_children() const {
  std::vector<PythonNode> nodes;
  for (const PythonNode& c : children()) {
    if (c.named()) nodes.push_back(c);
  }
  return nodes;
}

PythonNode PythonNode::field(absl::string_view name) const {
  if (null()) return {};
  TSNode node =
      ts_node_child_by_field_name(ToNode(raw_), name.data(), static_cast<uint32_t>(name.size()));
  return ts_node_is_null(node) ? PythonNode() : PythonNode(tree_, FromNode<Raw>(node));
}

std::vector<PythonNode> PythonNode::Find(absl::string_view type) const {
  std::vector<PythonNode> found;
  Walk([&](const PythonNode& node) {
    if (node.type() == type) found.push_back(node);
    return true;
  });
  return found;
}

bool PythonNode::operator==(const PythonNode& other) const {
  return tree_ == other.tree_ && (null() || raw_.id == other.raw_.id);
}

PythonTree::PythonTree(std::string source)
    : source_(std::move(source)), impl_(std::make_unique<Impl>()) {
  TSParser* parser = ts_parser_new();
  ts_parser_set_language(parser, tree_sitter_python());
  // The parser's recovery from errors can take minutes on some broken texts.
  constexpr uint64_t kMaxMicroseconds = 10'000'000;
  ts_parser_set_timeout_micros(parser, kMaxMicroseconds);
  impl_->tree = ts_parser_parse_string(parser, nullptr, source_.data(),
                                       static_cast<uint32_t>(source_.size()));
  ts_parser_delete(parser);
}

PythonTree::~PythonTree() = default;

PythonNode PythonTree::root() const {
  if (impl_->tree == nullptr) return {};
  return PythonNode(this, FromNode<PythonNode::Raw>(ts_tree_root_node(impl_->tree)));
}

std::optional<PythonSyntaxError> PythonTree::FirstError() const {
  if (impl_->tree == nullptr) return PythonSyntaxError{1, 1, "the text cannot be parsed"};
  if (!root().has_error()) return std::nullopt;
  std::optional<PythonSyntaxError> error;
  root().Walk([&](const PythonNode& node) {
    if (error.has_value() || !node.has_error()) return false;
    if (!node.is_error()) return true;
    std::string message;
    if (ts_node_is_missing(ToNode(node.raw_))) {
      message = absl::StrCat("missing '", node.type(), "'");
    } else {
      absl::string_view text = node.text();
      text = text.substr(0, std::min(text.find('\n'), size_t{60}));
      message = absl::StrCat("unexpected '", text, "'");
    }
    error = PythonSyntaxError{node.line(), node.column(), std::move(message)};
    return false;
  });
  if (!error.has_value()) error = PythonSyntaxError{1, 1, "invalid syntax"};
  return error;
}

std::optional<PythonSyntaxError> PythonTree::FenceError() const {
  constexpr absl::string_view kFence = "```";
  const absl::string_view source = source_;
  // The fast exit for nearly all texts.
  if (!absl::StrContains(source, kFence) || !FirstError().has_value()) return std::nullopt;
  const std::vector<PythonNode> strings = root().Find("string");
  int line = 0;
  for (size_t begin = 0, end = 0; begin < source.size(); begin = end + 1) {
    ++line;
    end = std::min(source.find('\n', begin), source.size());
    if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(source.substr(begin, end - begin)),
                          kFence)) {
      continue;
    }
    const bool in_string = std::any_of(strings.begin(), strings.end(), [&](const PythonNode& node) {
      return node.start_byte() < begin && begin < node.end_byte();
    });
    if (in_string) continue;
    return PythonSyntaxError{line, 1,
                             "a Markdown fence (```) stands here: pass the Python code alone, "
                             "without fences and the text around them"};
  }
  return std::nullopt;
}

}  // namespace tritonrl
