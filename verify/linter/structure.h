// Rules about the parts that a program must have: a Triton kernel, ModelNew.forward, and a way from
// one to the other.
#ifndef TRITONRL_VERIFY_LINTER_STRUCTURE_H_
#define TRITONRL_VERIFY_LINTER_STRUCTURE_H_

#include "verify/linter/linter.h"
#include "verify/linter/program.h"

namespace tritonrl::lint {

// kNoKernel: nothing mentions triton.jit. kNoModel: nothing is named ModelNew, or it is a plain
// torch.nn.Module without a forward. Anything less plain is left to the run.
void FindMissingParts(const Program& program, LintResult* result);

// kKernelNotUsed: no code that can run mentions a kernel's name. Code that can run is the module's,
// ModelNew's, and that of the functions and classes whose names it mentions.
void FindUnusedKernels(const Program& program, LintResult* result);

// The class ModelNew where it is a statement of the module and nothing else has its name; else
// null.
const Node* OnlyModel(const Program& program);

}  // namespace tritonrl::lint

#endif  // TRITONRL_VERIFY_LINTER_STRUCTURE_H_
