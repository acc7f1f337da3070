// The linter: a first, fast layer that refuses a candidate program only for what its source shows
// for certain. It parses the program and looks at names, definitions and the straight path through
// ModelNew.forward; it does not follow values. Who computes the result is the run's to say.
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
  kNoKernel,       // nothing mentions triton.jit
  kNoModel,        // no ModelNew, or none with forward
  kNoCode,         // empty source
  kTooLarge,       // too many syntax nodes to be an honest program
  kForbidden,      // exec, eval, ctypes, processes, other kernel languages, ...
  kTorchCompute,   // torch computes in forward, whatever path it takes
  kKernelNotUsed,  // nothing that can run mentions a kernel
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
  // Empty: accepted. Forbidden constructs first, then by rule.
  std::vector<LintFinding> findings;

  bool syntax_ok() const;  // no finding of the layer "syntax"
  bool ok() const { return findings.empty(); }
};

// Does not fail: whatever is wrong with the source is a finding. Time is bounded by limits of size
// and depth.
LintResult Lint(absl::string_view source);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_LINTER_LINTER_H_
