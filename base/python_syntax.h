// Python syntax trees from tree-sitter. No code is executed.
#ifndef TRITONRL_BASE_PYTHON_SYNTAX_H_
#define TRITONRL_BASE_PYTHON_SYNTAX_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tritonrl {

class PythonTree;

// A node of a tree: a small value, valid as long as its PythonTree. A null node returns "", 0 or no
// children, so that chained calls need no null checks.
class PythonNode {
 public:
  PythonNode() = default;

  bool null() const { return tree_ == nullptr; }
  // Grammar name: "module", "function_definition", "call", "attribute", "identifier", ...
  absl::string_view type() const;
  absl::string_view text() const;  // source text of the node
  bool named() const;              // false for punctuation and keywords
  bool has_error() const;          // this node or one below it is a syntax error
  bool is_error() const;           // an ERROR node, or a missing token that the parser inserted
  int line() const;                // 1-based line of the first character
  int column() const;              // 1-based column of the first character, in bytes
  int end_line() const;            // 1-based line of the last character
  size_t start_byte() const;
  size_t end_byte() const;

  PythonNode parent() const;
  int child_count() const;
  PythonNode child(int index) const;
  std::vector<PythonNode> children() const;  // all, including punctuation
  std::vector<PythonNode> named_children() const;
  // The child in a grammar field: "name", "body", "function", "arguments", "left", "right", ...
  PythonNode field(absl::string_view name) const;
  // This node and all nodes below it that have the type `type`, in source order.
  std::vector<PythonNode> Find(absl::string_view type) const;
  // Calls visit(node) for this node and, if it returns true, recursively for its children in order.
  template <typename Visitor>
  void Walk(Visitor&& visit) const {
    if (null() || !visit(*this)) return;
    for (const PythonNode& c : children()) c.Walk(visit);
  }
  bool operator==(const PythonNode& other) const;

 private:
  friend class PythonTree;
  // Same layout as tree-sitter's TSNode: four words of context, an id and the tree.
  struct Raw {
    unsigned context[4] = {0, 0, 0, 0};
    const void* id = nullptr;
    const void* tree = nullptr;
  };
  PythonNode(const PythonTree* tree, const Raw& raw) : tree_(tree), raw_(raw) {}

  const PythonTree* tree_ = nullptr;
  Raw raw_;
};

struct PythonSyntaxError {
  int line = 0;    // 1-based
  int column = 0;  // 1-based, in bytes
  std::string message;
};

// The syntax tree of a text; owns the text.
class PythonTree {
 public:
  // Never fails: syntax errors become error nodes. If the parser exceeds 10 s, root() is null.
  explicit PythonTree(std::string source);
  ~PythonTree();
  PythonTree(const PythonTree&) = delete;
  PythonTree& operator=(const PythonTree&) = delete;

  const std::string& source() const { return source_; }
  PythonNode root() const;
  // The first error in source order. The grammar is a little more lenient than CPython's parser.
  std::optional<PythonSyntaxError> FirstError() const;
  // If the text has syntax errors and a line outside strings begins with ```, an error at the first
  // such line, which says that the program was copied together with its Markdown fence.
  std::optional<PythonSyntaxError> FenceError() const;

 private:
  friend class PythonNode;
  struct Impl;
  std::string source_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_PYTHON_SYNTAX_H_
