// A task with its variants: the findings of their checks, and the variants that are kept.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_FAMILY_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_FAMILY_H_

#include <string>
#include <vector>

#include "tasks/loader.h"
#include "tools/task_check/task_checker.h"

namespace tritonrl {

// The reason of a check whose worker was lost, in addition to those of TaskFinding. It is not kept:
// the next run checks again.
inline constexpr char kSandboxError[] = "sandbox_error";

// A variant that was checked.
struct Variant {
  std::string function;  // its get_inputs()
  std::string source;    // the task with this function
  TaskFinding finding;
  std::string left_out;  // why it is not kept, "reason: sentence"; "": it is kept
};

struct Family {
  const Task* task = nullptr;
  int rounds = 0;                      // responses that were read
  std::vector<std::string> proposals;  // functions of responses that are not checked yet

  bool checked = false;             // `original` and `inputs` are known
  TaskFinding original;             // of the task itself
  std::vector<std::string> inputs;  // of the task itself, as in TaskFinding; empty: unknown
  std::vector<Variant> variants;    // in the order of the responses
  bool lost = false;                // the worker of one of the checks was lost

  // The task itself raises an error, crashes, or has no usable result, so it has no variants. A
  // task that only exceeds the limits here may have some, and so may one whose result is random,
  // constant or not finite: each variant is checked by itself.
  bool broken() const;
  int kept() const;  // variants
};

// Why inputs of the shapes `variant` are not a variant of those of `original`, both as in
// TaskFinding::inputs: another number of inputs, another type or number of dimensions, or the same
// shapes. "": they are a variant.
std::string CompareInputs(const std::vector<std::string>& original,
                          const std::vector<std::string>& variant);

// Why a further variant with this finding is not kept; "": it is. A random or constant result
// counts only if the task itself has none. The variant's inputs are compared with the task's own,
// and where these are unknown with those of the first variant that is kept: then the variants agree
// with each other, and may repeat the task's own shapes.
std::string ReasonToLeaveOut(const Family& family, const TaskFinding& finding);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_FAMILY_H_
