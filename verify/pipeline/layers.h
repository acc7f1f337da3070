// Writes each layer's result into a verdict: those of syntax and functionality from the linter,
// those of the later layers from one run at the device backend. All functions are pure.
#ifndef TRITONRL_VERIFY_PIPELINE_LAYERS_H_
#define TRITONRL_VERIFY_PIPELINE_LAYERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"
#include "tasks/response.h"
#include "verify/judge/judge.h"
#include "verify/pipeline/runtime_audit.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Fails the syntax layer with NO_CODE because the response is malformed.
void FailMalformedResponse(const SplitResponse& split, Verdict* verdict);

// Checks syntax and functionality by the source alone; returns true if both pass. If
// check_functionality is false, it checks only syntax and sets functionality to OK.
bool CheckSource(absl::string_view code, bool check_functionality, int64_t max_source_bytes,
                 Verdict* verdict);

// Sets the results of functionality (by `audit`), compiled, correct and speedup, and the kernels,
// from a finished run. A failure of the task or the infrastructure becomes the verdict's outcome.
void ApplyExecResult(const ExecResult& result, RunAudit audit, bool measure_time, int trials,
                     Verdict* verdict);

// Sets the judge layer's result for a candidate. If `opinion` is an error, the verdict's
// outcome becomes an infrastructure error: CANCELLED or JUDGE_UNAVAILABLE.
void ApplyJudgeOpinion(const absl::StatusOr<JudgeOpinion>& opinion, Verdict* verdict);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PIPELINE_LAYERS_H_
