// Parts of Python programs that are written in several ways.
#ifndef TRITONRL_TOOLS_KERNELBOOK_PYTHON_PARTS_H_
#define TRITONRL_TOOLS_KERNELBOOK_PYTHON_PARTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/python_syntax.h"

namespace tritonrl {

// Whether the grammar calls the node `type`.
inline bool Is(const PythonNode& node, absl::string_view type) { return node.type() == type; }

// Whether an expression of this type needs parentheses as a part of another operation.
bool IsOperation(absl::string_view type);

// Whether it is a tuple, as an expression or a target, with or without parentheses.
bool IsTuple(absl::string_view type);

std::vector<PythonNode> WithoutComments(const std::vector<PythonNode>& nodes);

// The arguments if `statement` is super(...).__init__(...), else null.
PythonNode BaseConstructorArguments(const PythonNode& statement);

// Whether a statement does not change a program: an import, a docstring or another constant, pass,
// an annotation without a value, or the call of the base class's constructor without arguments.
bool HasNoEffect(const PythonNode& statement);

// The class definition that holds the node, or null.
PythonNode EnclosingClass(PythonNode node);

// An __init__ without which the class would be the same: it only calls the base class's one, with
// its own parameters.
bool IsTrivialConstructor(const PythonNode& function);

// The number in one spelling: 1000 for 1_000, the same text for 1e-5 and 0.00001.
std::string Number(const PythonNode& node);

struct PythonLiteral {
  std::string prefix;   // "r", "b", "f" or several, where they matter
  std::string content;  // without quotes
};

// Of the text of a string literal without interpolations.
PythonLiteral LiteralOf(absl::string_view text);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_KERNELBOOK_PYTHON_PARTS_H_
