// What each layer finds, written into a verdict: the source layers from the linter, the later ones
// from one run at the device backend. Pure functions; the verifier decides when they are called.
#ifndef TRITONRL_VERIFY_PIPELINE_LAYERS_H_
#define TRITONRL_VERIFY_PIPELINE_LAYERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"
#include "tasks/prompt_format.h"
#include "verify/judge/judge.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Fails the syntax layer for a response of a malformed shape.
void FailMalformedResponse(const SplitResponse& split, Verdict* verdict);

// Syntax and functionality from the source alone. Returns true when both pass. With
// check_functionality false only syntax is judged and functionality is set to OK.
bool CheckSource(absl::string_view code, bool check_functionality, int64_t max_source_bytes,
                 Verdict* verdict);

// Run-time side of functionality, compiled, correct and speedup from a finished run. An end that is
// not the candidate's doing becomes the verdict's outcome.
void ApplyExecResult(const ExecResult& result, bool check_functionality, bool measure_time,
                     int trials, Verdict* verdict);

// What the judge said of a candidate that was right; an error is an infrastructure error.
void ApplyJudgeOpinion(const absl::StatusOr<JudgeOpinion>& opinion, Verdict* verdict);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PIPELINE_LAYERS_H_
