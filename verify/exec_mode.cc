#include "verify/exec_mode.h"

#include "absl/strings/str_cat.h"

namespace tritonrl {

absl::StatusOr<ExecMode> ParseExecMode(absl::string_view name) {
  for (const ExecMode mode : {EXEC_MODE_PAPER, EXEC_MODE_ROBUST}) {
    if (name == absl::string_view(ExecModeName(mode))) return mode;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no mode: paper or robust"));
}

std::string ExecModeName(ExecMode mode) { return mode == EXEC_MODE_ROBUST ? "robust" : "paper"; }

}  // namespace tritonrl
