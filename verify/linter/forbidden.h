// Constructs that are refused by name wherever they stand, run or not.
#ifndef TRITONRL_VERIFY_LINTER_FORBIDDEN_H_
#define TRITONRL_VERIFY_LINTER_FORBIDDEN_H_

#include "verify/linter/ast.h"
#include "verify/linter/linter.h"

namespace tritonrl::lint {

// Appends a finding for each forbidden import, builtin, attribute and special method of the
// program.
void FindForbidden(const Node* root, LintResult* result);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_FORBIDDEN_H_
