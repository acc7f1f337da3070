// Writes the variants that are kept, and the records of a run.
#ifndef TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_FILES_H_
#define TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/augment_inputs/augment.h"
#include "tools/augment_inputs/family.h"

namespace tritonrl {

// The name of a variant's task: "TASK_v1".
std::string VariantName(const std::string& task, int number);

// Writes the files of AugmentOptions::out except the journals, removes variants that an earlier run
// wrote and this one does not, and sets the summary's figures of tasks and variants. left_out.jsonl
// has a line for each variant that is not kept, for each broken task, and with more than one round
// for each task with fewer variants than wanted.
absl::Status WriteVariants(const AugmentOptions& options, const std::vector<Family>& families,
                           AugmentSummary* summary);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_AUGMENT_INPUTS_VARIANT_FILES_H_
