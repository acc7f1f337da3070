// Uses of what no program of kernels may use, wherever they stand, run or not.
#ifndef TRITONRL_VERIFY_LINTER_FORBIDDEN_H_
#define TRITONRL_VERIFY_LINTER_FORBIDDEN_H_

#include "verify/linter/linter.h"
#include "verify/linter/program.h"

namespace tritonrl::lint {

// Finds text that is run as code, native code, processes, networks and other kernel languages. An
// import that nothing uses is left alone, and so is what does no harm to a program without data:
// Python's machinery, files, pickles.
void FindForbidden(const Program& program, LintResult* result);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_FORBIDDEN_H_
