// The modes of correctness as people write them.
#ifndef TRITONRL_VERIFY_EXEC_MODE_H_
#define TRITONRL_VERIFY_EXEC_MODE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// "paper" or "robust". InvalidArgument names the value and what it can be.
absl::StatusOr<ExecMode> ParseExecMode(absl::string_view name);

std::string ExecModeName(ExecMode mode);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_EXEC_MODE_H_
