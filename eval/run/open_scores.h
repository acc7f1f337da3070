// Scores without functionality checks, for the paper's figures "without robust verifier": from the
// verdicts that are there, and a run for those that stopped too early to tell.
#ifndef TRITONRL_EVAL_RUN_OPEN_SCORES_H_
#define TRITONRL_EVAL_RUN_OPEN_SCORES_H_

#include <optional>

#include "verify/verdict/metrics.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// The score that a candidate with this verdict would have if nobody asked who computes; nullopt if
// only a run without functionality checks tells, as the linter or the run refused it before it was
// compared. Refusals that only right candidates get (kernels that decorate, constant outputs, the
// judge's objection) count as correct. Speedups of refused candidates are 0, as nobody timed them.
// The verdict must not be an infrastructure error.
std::optional<SampleScore> OpenScoreOf(const Verdict& verdict);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_RUN_OPEN_SCORES_H_
