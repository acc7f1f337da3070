// Writes a composition as a KernelBench reference file and as a Triton program.
#ifndef TRITONRL_TASKS_PROGRAM_H_
#define TRITONRL_TASKS_PROGRAM_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "tasks/composition.h"

namespace tritonrl {

// Returns a PyTorch statement, such as "x = torch.relu(x)", for each of the uses [first, last).
std::vector<std::string> ReferenceStatements(const Composition& composition, int first, int last);

// Returns a whole reference file, from which MiniPrompt makes the prompt.
std::string WriteReference(const Composition& composition, const TaskShape& shape);

// Division of a composition into kernels: kernel k computes the uses [starts[k], starts[k + 1])
// with block size blocks[k].
struct KernelPlan {
  std::vector<int> starts;  // starts[0] is 0
  std::vector<int> blocks;

  int kernels() const { return static_cast<int>(starts.size()); }
};

// Draws a plan: one kernel if `fused` or if there is a single operator, otherwise two and sometimes
// three. Kernels on flat memory get a block of 64 to 1024 elements; a kernel on rows gets a block
// that holds a row; the tile of a GEMM divides all sides.
KernelPlan DrawKernelPlan(const Composition& composition, const TaskShape& shape, bool fused,
                          Philox* random);

// Returns the plan as one line, e.g. "fuse mul gelu in one kernel, block 256".
std::string PlanText(const Composition& composition, const KernelPlan& plan);

// A Triton program in parts, in which mistakes can be made.
struct Program {
  std::vector<std::vector<std::string>> kernels;  // lines of each kernel, beginning "@triton.jit"
  std::vector<std::string> forward;               // lines of forward's body, not indented
  bool uses_y = false;                            // forward takes x and y

  std::string Text() const;  // the complete module
};

// The form number of an operator that the program omits.
constexpr int kDroppedForm = -1;

// Writes the program for a plan. forms[i] is the form of use i: 0 is the right form, n > 0 its n-th
// wrong form, kDroppedForm omits it. With all forms 0 the program computes the same as the
// reference.
Program WriteProgram(const Composition& composition, const KernelPlan& plan,
                     const std::vector<int>& forms);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_PROGRAM_H_
