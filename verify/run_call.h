// Does what a call of //verify:verify asks for.
#ifndef TRITONRL_VERIFY_RUN_CALL_H_
#define TRITONRL_VERIFY_RUN_CALL_H_

#include "absl/status/status.h"
#include "verify/call.h"

namespace tritonrl {

// Exit codes of the program; what they mean for a pair, a batch and a preflight: verify_main.cc.
constexpr int kCallCorrect = 0, kCallCandidateFailed = 1, kCallUserError = 2, kCallFaultOfOurs = 3;

// Checks the call, reads its inputs, starts what it needs and prints what came of it. Verdicts go
// to stdout, progress and one sentence for a mistake to stderr. Returns the exit code.
int RunCall(const VerifyCall& call);

// Prints the sentence of a mistake in the call.
int ComplainOfCall(const absl::Status& status);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_RUN_CALL_H_
