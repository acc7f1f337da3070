// The rule kTorchCompute, only where the source shows that it is so: forward runs an operator of
// torch on its inputs whatever path it takes.
#ifndef TRITONRL_VERIFY_LINTER_CERTAIN_COMPUTE_H_
#define TRITONRL_VERIFY_LINTER_CERTAIN_COMPUTE_H_

#include "verify/linter/linter.h"
#include "verify/linter/program.h"

namespace tritonrl::lint {

// Looks at what ModelNew.forward runs before it can return: not at branches, loops, helpers and
// other functions. Operators that small tables of an honest program need (sums, sorts, padding,
// arithmetic) are never found, and elementwise ones only where forward has one input, which cannot
// be a handful of numbers beside the real one.
void FindCertainCompute(const Program& program, LintResult* result);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_CERTAIN_COMPUTE_H_
