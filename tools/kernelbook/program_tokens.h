// The tokens of a Python program that say what it computes, from its syntax tree.
#ifndef TRITONRL_TOOLS_KERNELBOOK_PROGRAM_TOKENS_H_
#define TRITONRL_TOOLS_KERNELBOOK_PROGRAM_TOKENS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/python_syntax.h"

namespace tritonrl {

// Deeper parts of a syntax tree are ignored. Python itself refuses such programs.
inline constexpr int kMaxProgramDepth = 400;

// Names that a program gives to classes, functions, parameters, variables and attributes of self,
// and the full names that its imports bind.
struct ProgramNames {
  std::set<std::string> own, attributes;
  std::map<std::string, std::string> imported;  // name: full name
};

ProgramNames NamesOf(const PythonNode& root);

// Whether the node is an annotation: the type of a parameter, a variable or a result.
bool IsAnnotation(const PythonNode& node);

// Collects the tokens of parts of one program. Left out is what does not change a program:
// annotations, docstrings, comments, imports, pass, super().__init__() without arguments, a
// constructor that does nothing but call the base class's, quotes, line breaks, trailing commas and
// needless parentheses. Own names are numbered in the order of their first use. Names of libraries
// are written in full; a function of torch.nn.functional is the one of torch.
class ProgramTokens {
 public:
  explicit ProgramTokens(const ProgramNames& names) : names_(names) {}

  void Add(const PythonNode& node) { Emit(node, /*operand=*/false, /*depth=*/0); }
  void AddEntryPoint(const std::string& name) { Own("n:" + name); }

  uint64_t Hash() const;         // of all tokens in their order
  uint64_t LibraryHash() const;  // of the set of library names and operators
  std::vector<uint64_t> Shingles()
      const;  // hashes of five tokens in a row, sorted; own names alike

 private:
  void Put(absl::string_view token) { tokens_.emplace_back(token); }
  void Own(const std::string& key);
  void Library(const std::string& full_name);
  void Identifier(absl::string_view text);
  std::string FullName(const PythonNode& node) const;

  // `operand`: the node is a part of an operation, so that an operation there needs parentheses.
  void Emit(const PythonNode& node, bool operand, int depth);
  void Children(const PythonNode& node, int depth);
  void Leaf(const PythonNode& node, absl::string_view parent);
  void Sequence(const PythonNode& node, int depth);
  void Class(const PythonNode& node, int depth);
  void String(const PythonNode& node, int depth);
  void JoinedStrings(const PythonNode& node, int depth);
  void Text(const std::string& prefix, const std::string& content);
  void Attribute(const PythonNode& node, int depth);
  void Call(const PythonNode& node, int depth);
  void Arguments(const PythonNode& node, bool own_callee, int depth);
  void Subscript(const PythonNode& node, int depth);

  const ProgramNames& names_;
  std::vector<std::string> tokens_;  // own names as "$" and their number
  std::map<std::string, size_t> numbers_;
  std::set<std::string> library_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_KERNELBOOK_PROGRAM_TOKENS_H_
