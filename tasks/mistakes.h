// The mistakes and shortcuts that generated responses make.
#ifndef TRITONRL_TASKS_MISTAKES_H_
#define TRITONRL_TASKS_MISTAKES_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "tasks/composition.h"
#include "tasks/program.h"

namespace tritonrl {

// Picks how each operator is written (see WriteProgram): a wrong form with chance `hard_rate` or
// `easy_rate`, evenly among the wrong forms there are. Names what it picked in `mistakes`
// ("form:gelu:2").
std::vector<int> DrawForms(const Composition& composition, double hard_rate, double easy_rate,
                           Philox* random, std::vector<std::string>* mistakes);

// What a mistake may look at.
struct MistakeContext {
  const Composition& composition;
  const KernelPlan& plan;
  const std::vector<int>& forms;
};

// The structural mistakes (a lost mask, a grid rounded down, ...) and shortcuts (work left to
// torch, a kernel that is never launched, a kernel that only copies) by name.
const std::vector<std::string>& StructuralMistakeNames();

// Makes one named mistake in a right program. False, with the program as it was, if the program
// has no place for it. Some mistakes do no harm in some programs (a lost mask when the block
// divides the size), as it is with people.
bool ApplyStructuralMistake(const std::string& name, const MistakeContext& context,
                            Program* program, Philox* random);

// Makes one that fits, drawn evenly among names in a random order; returns its name.
std::string ApplyRandomStructuralMistake(const MistakeContext& context, Program* program,
                                         Philox* random);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_MISTAKES_H_
