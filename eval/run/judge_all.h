// Many verdicts at once, with progress, a deadline, and an end on request.
#ifndef TRITONRL_EVAL_RUN_JUDGE_ALL_H_
#define TRITONRL_EVAL_RUN_JUDGE_ALL_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/program.h"
#include "verify/pipeline/verifier.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

struct JudgeAllOptions {
  std::string label = "samples";  // of the progress bar on stderr
  absl::Time deadline = absl::InfiniteFuture();
  std::function<absl::Status()> health;  // an error ends it
};

// Returns the verdicts in the order of the requests, or nullopt if `stop` was requested. An early
// end closes the verifier. Errors: DeadlineExceeded; those of `health`.
absl::StatusOr<std::optional<std::vector<Verdict>>> JudgeAll(std::vector<VerifyRequest> requests,
                                                             const JudgeAllOptions& options,
                                                             const SignalHandler& stop,
                                                             Verifier* verifier);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_RUN_JUDGE_ALL_H_
