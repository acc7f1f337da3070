// A compact syntax tree of a Python program, made once from tree-sitter's: punctuation and comments
// are gone, fields are direct.
#ifndef TRITONRL_VERIFY_LINTER_AST_H_
#define TRITONRL_VERIFY_LINTER_AST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "verify/linter/grammar.h"

namespace tritonrl::lint {

// A node of an Ast. Nodes lie in one array, parents before their children: a node's subtree is the
// node and those behind it, `span` in all.
struct Node {
  Node() = default;
  Node(const Node&) = delete;  // its place says what its parent and its children are
  Node(Node&&) = default;

  Kind kind = Kind::kOther;
  Field field = Field::kNone;  // under which the parent holds it
  int line = 0;                // 1-based
  absl::string_view text;
  uint32_t up = 0;    // places behind the parent; 0: the root
  uint32_t span = 1;  // nodes of its subtree
  uint32_t last = 0;  // places to the last child; 0: none

  const Node* parent() const { return up == 0 ? nullptr : this - up; }

  class Children;
  Children children() const;

  // The first child in a field, or null.
  const Node* Get(Field f) const;
};

// The children of a node, in order. size() and [] walk.
class Node::Children {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = const Node*;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = value_type;

    Iterator() = default;
    explicit Iterator(const Node* node) : node_(node) {}
    const Node* operator*() const { return node_; }
    Iterator& operator++() {
      node_ += node_->span;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Node* node_ = nullptr;
  };

  explicit Children(const Node* parent) : parent_(parent) {}

  Iterator begin() const { return Iterator(parent_ + 1); }
  Iterator end() const { return Iterator(parent_ + parent_->span); }
  bool empty() const { return parent_->last == 0; }
  size_t size() const { return static_cast<size_t>(std::distance(begin(), end())); }
  const Node* operator[](size_t i) const {
    return *std::next(begin(), static_cast<std::ptrdiff_t>(i));
  }
  const Node* front() const { return parent_ + 1; }
  const Node* back() const { return parent_ + parent_->last; }

 private:
  const Node* parent_;
};

inline Node::Children Node::children() const { return Children(this); }

inline const Node* Node::Get(Field f) const {
  for (const Node* child : children()) {
    if (child->field == f) return child;
  }
  return nullptr;
}

// Owns the text and the nodes; not movable, since nodes point into the text.
class Ast {
 public:
  Ast() = default;
  Ast(const Ast&) = delete;
  Ast& operator=(const Ast&) = delete;

  // Parses. False when the text is not Python (error_line, error_text are set) or too large
  // (too_large is set).
  bool Parse(absl::string_view source);

  // After Parse returned true.
  const Node* root() const { return nodes_.data(); }

  int error_line = 0;
  std::string error_text;
  bool too_large = false;

 private:
  class Builder;

  std::string source_;
  std::vector<Node> nodes_;
};

// True if `holds` is true of the node or one below it.
template <typename Predicate>
bool AnyBelow(const Node* node, const Predicate& holds) {
  return std::any_of(node, node + node->span, [&](const Node& below) { return holds(&below); });
}

// "torch.nn" of a dotted name, whatever stands between its parts.
std::string DottedText(const Node* node);
// The text of a literal without escapes and interpolations; nullopt for others.
std::optional<std::string> PlainString(const Node* node);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_AST_H_
