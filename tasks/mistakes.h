// Makes mistakes and shortcuts in the programs of generated responses.
#ifndef TRITONRL_TASKS_MISTAKES_H_
#define TRITONRL_TASKS_MISTAKES_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "tasks/composition.h"
#include "tasks/program.h"

namespace tritonrl {

// Draws the form of each operator use (see WriteProgram): with probability `hard_rate` or
// `easy_rate` one of its wrong forms, uniformly. Appends the wrong forms to `mistakes`, e.g.
// "form:gelu:2".
std::vector<int> DrawForms(const Composition& composition, double hard_rate, double easy_rate,
                           Philox* random, std::vector<std::string>* mistakes);

// The parts from which the program was written. A mistake may write the program again from them.
struct MistakeContext {
  const Composition& composition;
  const KernelPlan& plan;
  const std::vector<int>& forms;
};

// The names of all structural mistakes (a missing mask, a grid rounded down, ...) and shortcuts
// (work left to torch, kernels that are never launched, a kernel that only copies).
const std::vector<std::string>& StructuralMistakeNames();

// Makes the named mistake in a program. Returns false and leaves the program unchanged if the
// mistake is not applicable or its name unknown. Some mistakes are harmless in some programs, e.g.
// a missing mask if the block divides the size.
bool ApplyStructuralMistake(const std::string& name, const MistakeContext& context,
                            Program* program, Philox* random);

// Makes one mistake, drawn at random from those that are applicable; returns its name.
std::string ApplyRandomStructuralMistake(const MistakeContext& context, Program* program,
                                         Philox* random);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_MISTAKES_H_
