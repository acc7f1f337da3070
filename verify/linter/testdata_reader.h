// Reads the linter's test programs: many in one file, with shared snippets.
#ifndef TRITONRL_VERIFY_LINTER_TESTDATA_READER_H_
#define TRITONRL_VERIFY_LINTER_TESTDATA_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

struct LintCase {
  std::string name;
  std::vector<std::string> rules;  // expected: one of these; empty for honest programs
  std::string found;               // expected LintFinding::name; empty: any
  int line = 0;                    // expected line of `source`; 0 if none is marked
  std::string source;              // with imports in front and snippets filled in
  std::string reference;           // honest programs: what they replace; may be empty
};

// `file` and its "snippets.py" lie in `folder`, a path below the workspace's root. Lines of a file
// that stand for something:
//   # case: NAME                      an honest program follows
//   # case: NAME -> RULE[|RULE] [FOUND]   a cheat, and what is found in it
//   # use: SNIPPET                    stands for a snippet
//   # task: INPUTS => LAMBDA          what it computes: forward of the reference, and its inputs
//   # layers: STATEMENTS              in the reference's __init__: its layers
// "# BAD" at the end of a line marks the line that the finding names.
absl::StatusOr<std::vector<LintCase>> ReadLintCases(
    const std::string& file, const std::string& folder = "verify/linter/testdata");

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_LINTER_TESTDATA_READER_H_
