#include "exec/device_backend.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

Outcome::Status StatusOf(Outcome::Reason reason) {
  if (reason == Outcome::OK) return Outcome::STATUS_OK;
  if (reason == Outcome::UNSPECIFIED || reason >= 800) return Outcome::STATUS_INFRA_ERROR;
  return reason >= 700 ? Outcome::STATUS_TASK_FAILED : Outcome::STATUS_CANDIDATE_FAILED;
}

bool IsRetryable(Outcome::Reason reason) {
  return StatusOf(reason) == Outcome::STATUS_INFRA_ERROR && reason != Outcome::NOT_EXECUTABLE &&
         reason != Outcome::CANCELLED && reason != Outcome::INCONCLUSIVE;
}

std::string ReasonName(Outcome::Reason reason) {
  return absl::AsciiStrToLower(Outcome::Reason_Name(reason));
}

void SetOutcome(Outcome::Reason reason, const std::string& message, Outcome* outcome) {
  outcome->set_status(StatusOf(reason));
  outcome->set_reason(reason);
  outcome->set_message(message);
  outcome->clear_device_memory();
}

absl::StatusOr<ExecMode> ParseExecMode(absl::string_view name) {
  for (const ExecMode mode : {EXEC_MODE_PAPER, EXEC_MODE_ROBUST}) {
    if (name == absl::string_view(ExecModeName(mode))) return mode;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no mode: paper or robust"));
}

std::string ExecModeName(ExecMode mode) { return mode == EXEC_MODE_ROBUST ? "robust" : "paper"; }

}  // namespace tritonrl
