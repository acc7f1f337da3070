#include "exec/device_backend.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "exec/device_backend.h"

// Names and faults of outcomes (declared in device_backend.h).

namespace tritonrl {

ExecFault FaultOf(ExecOutcome outcome) {
  if (outcome == EXEC_OK) return EXEC_FAULT_NONE;
  if (outcome == EXEC_REFERENCE_FAILED) return EXEC_FAULT_TASK;
  // The numbers in messages.proto keep the groups apart.
  if (outcome >= EXEC_IMPORT_ERROR && outcome < EXEC_NOT_EXECUTABLE) return EXEC_FAULT_CANDIDATE;
  return EXEC_FAULT_INFRA;
}

bool IsRetryable(ExecOutcome outcome) {
  return FaultOf(outcome) == EXEC_FAULT_INFRA && outcome != EXEC_NOT_EXECUTABLE &&
         outcome != EXEC_POOL_STOPPED && outcome != EXEC_INCONCLUSIVE;
}

std::string OutcomeName(ExecOutcome outcome) {
  const std::string& name = ExecOutcome_Name(outcome);  // "EXEC_TIMEOUT"
  return absl::AsciiStrToLower(absl::string_view(name).substr(sizeof("EXEC_") - 1));
}

absl::StatusOr<ExecMode> ParseExecMode(absl::string_view name) {
  for (const ExecMode mode : {EXEC_MODE_PAPER, EXEC_MODE_ROBUST}) {
    if (name == absl::string_view(ExecModeName(mode))) return mode;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no mode: paper or robust"));
}

std::string ExecModeName(ExecMode mode) { return mode == EXEC_MODE_ROBUST ? "robust" : "paper"; }

}  // namespace tritonrl
