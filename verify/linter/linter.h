// The rule linter: decides from the source alone whether a candidate's Triton kernels do the work.
//
// The program is parsed, its module body and ModelNew.__init__ are interpreted abstractly, then
// ModelNew.forward with tensors of unknown contents. The interpreter follows helpers, methods,
// closures, containers, aliases, decorators and autograd.Function; it knows for each tensor which
// storages it may share, and for each kernel which of its arguments it writes. A candidate is
// accepted when a kernel that computes on loaded data writes what forward returns and nothing else
// computes on the way.
#ifndef TRITONRL_VERIFY_LINTER_LINTER_H_
#define TRITONRL_VERIFY_LINTER_LINTER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tritonrl {

// What a finding is about. Each makes the candidate fail; the first five belong to the layer
// "syntax".
enum class LintRule {
  kParseError,     // not Python
  kNoKernel,       // no @triton.jit function
  kNoModel,        // no class ModelNew with forward
  kNoCode,         // empty source
  kTooLarge,       // too many syntax nodes to be an honest program
  kForbidden,      // exec, eval, ctypes, patching a library, ...
  kTorchCompute,   // torch or another library computes in forward's path
  kPythonCompute,  // tensor elements are moved to Python or NumPy
  kKernelNotUsed,  // no kernel writes forward's result
  kHardCoded,      // constants in place of a computation
  kTrivialKernel,  // the kernels on the path only copy
  kUnresolved,     // tensors flow into something that cannot be followed
};

// A stable lower-case name: "torch_compute".
absl::string_view LintRuleName(LintRule rule);

struct LintFinding {
  LintRule rule;
  int line = 0;      // 1-based line of the source
  std::string name;  // "torch.matmul", "@", "ctypes", a kernel's name
  std::string text;  // one sentence for people
};

struct LintResult {
  // Empty: accepted. In the order of discovery, without repetitions, forbidden constructs first.
  std::vector<LintFinding> findings;
  std::vector<std::string> launched_kernels;  // names of the kernels launched in forward's path
  std::vector<int> launch_lines;              // a line of a launch for each of them

  bool syntax_ok() const;  // no finding of the layer "syntax"
  bool ok() const { return findings.empty(); }
};

// Does not fail: whatever is wrong with the source is a finding. Time is bounded by a budget of
// steps; a program that exceeds it gets kUnresolved.
LintResult Lint(absl::string_view source);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_LINTER_LINTER_H_
