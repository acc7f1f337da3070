// Reads the linter's test programs: many in one file, with shared snippets.
#ifndef TRITONRL_VERIFY_LINTER_TESTDATA_READER_H_
#define TRITONRL_VERIFY_LINTER_TESTDATA_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

struct LintCase {
  std::string name;
  std::string rule;    // expected rule; empty for honest programs
  std::string found;   // expected LintFinding::name
  int line = 0;        // expected line of `source`; 0 if none is marked
  std::string source;  // with imports in front and snippets filled in
};

// `file` and its "snippets.py" lie below verify/linter/testdata. A case starts with "# case: NAME"
// or
// "# case: NAME -> RULE FOUND"; "# use: SNIPPET" stands for a snippet; "# BAD" marks the expected
// line
//.
absl::StatusOr<std::vector<LintCase>> ReadLintCases(const std::string& file);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_LINTER_TESTDATA_READER_H_
