// Macros and helpers for absl::Status and absl::StatusOr.
#ifndef TRITONRL_BASE_STATUS_H_
#define TRITONRL_BASE_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {

// Returns `status` with "context: " in front of its message; an OK status is returned unchanged.
inline absl::Status AddContext(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

// The message for users: without the code, such as "INVALID_ARGUMENT: ", in front.
inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

}  // namespace tritonrl

// Returns `expr` (an absl::Status) from the enclosing function if it is an error.
#define RETURN_IF_ERROR(expr)                                             \
  do {                                                                    \
    if (absl::Status tritonrl_status_ = (expr); !tritonrl_status_.ok()) { \
      return tritonrl_status_;                                            \
    }                                                                     \
  } while (false)

#define TRITONRL_STATUS_CONCAT_INNER_(a, b) a##b
#define TRITONRL_STATUS_CONCAT_(a, b) TRITONRL_STATUS_CONCAT_INNER_(a, b)
#define TRITONRL_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, ...) \
  auto statusor = (__VA_ARGS__);                            \
  if (!statusor.ok()) return statusor.status();             \
  lhs = *std::move(statusor)

// ASSIGN_OR_RETURN(auto x, F()) assigns the value of a StatusOr, or returns its error from the
// enclosing function. Use `auto` for a type with a comma in it.
#define ASSIGN_OR_RETURN(lhs, ...)                                                            \
  TRITONRL_ASSIGN_OR_RETURN_IMPL_(TRITONRL_STATUS_CONCAT_(tritonrl_statusor_, __LINE__), lhs, \
                                  __VA_ARGS__)

#endif  // TRITONRL_BASE_STATUS_H_
