// What a recording shows of who did the work, beyond whether the result is right.
#ifndef TRITONRL_EXEC_CLIENT_RUN_RECORDING_RULES_H_
#define TRITONRL_EXEC_CLIENT_RUN_RECORDING_RULES_H_

#include <optional>
#include <set>
#include <string>

#include "exec/device/session.h"
#include "exec/messages.pb.h"

namespace tritonrl {

struct RuleFinding {
  Outcome::Reason reason = Outcome::UNSPECIFIED;
  std::string message;
  int line = 0;  // of the candidate's source; 0: unknown
};

// Judges a session whose calls all gave outputs. A finding if
// - forward tried what the executor refuses, and went on with another way;
// - no byte of the first result was written by a kernel, or some came from the host;
// - operators overwrote bytes that a kernel had written with constants;
// - operators moved much more than the kernels can have moved;
// - the constructor computed new tensors of drawn weights by more than scaling and shifting them;
// - forward drew more than a few random numbers, where the reference draws none.
std::optional<RuleFinding> JudgeRecording(const device::SessionResult& session,
                                          const ExecResult& reference);

// Whether the reference's forward draws random numbers.
bool DrawsRandomNumbers(const ExecResult& reference);

// What forward may run besides, where the reference draws random numbers: the operators that make a
// mask of constants and random numbers.
std::set<std::string> MaskOperators();

// Why forward failed, where the executor knows it better than the candidate's own words: an
// operator that it refused, or a kernel that went wrong. The first incident of forward decides.
std::optional<RuleFinding> ExplainFailure(const device::SessionResult& session);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_RECORDING_RULES_H_
