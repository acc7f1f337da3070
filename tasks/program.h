// Writes a composition as a KernelBench reference file and as a Triton program.
#ifndef TRITONRL_TASKS_PROGRAM_H_
#define TRITONRL_TASKS_PROGRAM_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "tasks/composition.h"

namespace tritonrl {

// The operators of a composition in PyTorch, one statement each, for the uses [first, last):
// "x = torch.relu(x)".
std::vector<std::string> ReferenceStatements(const Composition& composition, int first, int last);

// A whole reference file. BuildPrompt(kMini) makes the prompt from it.
std::string WriteReference(const Composition& composition, const TaskShape& shape);

// Division of a composition into kernels: kernel k computes the uses [starts[k], starts[k + 1])
// with block size blocks[k].
struct KernelPlan {
  std::vector<int> starts;  // starts[0] is 0
  std::vector<int> blocks;

  int kernels() const { return static_cast<int>(starts.size()); }
};

// A plan with one kernel, or (for a composition of several operators) with two and sometimes
// three. Blocks of kernels that work on flat memory are drawn from 64 to 1024; a kernel that
// works on rows takes the row in one block; tiles of matrix products divide all sides.
KernelPlan DrawKernelPlan(const Composition& composition, const TaskShape& shape, bool fused,
                          Philox* random);

// One line: "fuse mul gelu in one kernel, block 256".
std::string PlanText(const Composition& composition, const KernelPlan& plan);

// A Triton program in parts, so that mistakes can be made in it.
struct Program {
  std::vector<std::vector<std::string>> kernels;  // the lines of each, from "@triton.jit" on
  std::vector<std::string> forward;               // lines of forward's body, not indented
  bool uses_y = false;                            // forward takes x and y

  std::string Text() const;  // the complete module
};

// The form of an operator that the program omits.
constexpr int kDroppedForm = -1;

// The program for a plan. forms[i] is the form of use i: 0 is right, n > 0 its n-th wrong form,
// kDroppedForm omits it. With all forms 0 the program computes the same as the reference.
Program WriteProgram(const Composition& composition, const KernelPlan& plan,
                     const std::vector<int>& forms);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_PROGRAM_H_
