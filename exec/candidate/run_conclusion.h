// What is concluded from one run of a candidate, once its process has ended.
#ifndef TRITONRL_EXEC_CANDIDATE_RUN_CONCLUSION_H_
#define TRITONRL_EXEC_CANDIDATE_RUN_CONCLUSION_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "exec/candidate/ablation.h"
#include "exec/compare/input_sensitivity.h"
#include "exec/compare/tensor_compare.h"
#include "exec/messages.pb.h"
#include "exec/reference/reference_runner.h"
#include "exec/timing/timing_result.h"

namespace tritonrl {

// What the supervisor saw of the run.
struct RunFindings {
  size_t compared = 0;  // calls
  Comparison wrong;     // equal as long as nothing differed
  // What differed was the first call once more; a timed one.
  bool repeated = false, timed = false;
  std::optional<double> max_error;
  RobustEvidence robust;
  std::vector<InputSensitivity>
      following;  // by leaf of the outputs, over trials with random inputs
  std::optional<TimingResult> timing;
  AblationResult ablation;
};

// Sets the final outcome in `result`, which holds what the executor saw, from the findings of the
// supervisor. RUNTIME_COMPUTE, where `result` has it, stays although outputs differ.
void Conclude(const ExecRequest& request, const ReferenceResult& reference_result,
              const RunFindings& found, ExecResult* result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_RUN_CONCLUSION_H_
