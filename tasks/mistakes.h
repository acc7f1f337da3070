// Mistakes and shortcuts of generated responses.
#ifndef TRITONRL_TASKS_MISTAKES_H_
#define TRITONRL_TASKS_MISTAKES_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "tasks/composition.h"
#include "tasks/program.h"

namespace tritonrl {

// Draws the form of each operator (see WriteProgram): a wrong one with probability `hard_rate` or
// `easy_rate`, uniform over the operator's wrong forms. Appends the wrong ones to `mistakes`, e.g.
// "form:gelu:2".
std::vector<int> DrawForms(const Composition& composition, double hard_rate, double easy_rate,
                           Philox* random, std::vector<std::string>* mistakes);

// The right program's parts, as input of a mistake.
struct MistakeContext {
  const Composition& composition;
  const KernelPlan& plan;
  const std::vector<int>& forms;
};

// The structural mistakes (a lost mask, a grid rounded down, ...) and shortcuts (work left to
// torch, a kernel that is never launched, a kernel that only copies) by name.
const std::vector<std::string>& StructuralMistakeNames();

// Makes one named mistake in a right program. False, with the program unchanged, if the program
// has no place for it. Some mistakes are harmless in some programs, e.g. a lost mask when the block
// divides the size.
bool ApplyStructuralMistake(const std::string& name, const MistakeContext& context,
                            Program* program, Philox* random);

// Makes the first mistake that fits, in a random order of their names; returns its name.
std::string ApplyRandomStructuralMistake(const MistakeContext& context, Program* program,
                                         Philox* random);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_MISTAKES_H_
