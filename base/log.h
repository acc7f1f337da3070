// The log of a process: lines with level and time on standard error. Only log.cc includes spdlog,
// because LibTorch's include folder has another version of the fmt library.
#ifndef TRITONRL_BASE_LOG_H_
#define TRITONRL_BASE_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Writes one line if `level` is at least the level given to SetUpLog, or info. Thread-safe.
void Log(LogLevel level, absl::string_view message);

struct LogOptions {
  std::string level = "info";   // debug, info, warning, error, off
  std::string format = "text";  // text: "2026-01-31T12:00:00.123 I message"; json: one object
};

// Sets level and format of this process's log; may be called again. InvalidArgument names an
// unknown level or format.
absl::Status SetUpLog(const LogOptions& options);

// From now on each line names this process's rank: "... I [rank 1] message", or "rank":1. A
// negative rank is not named.
void SetLogRank(int rank);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_LOG_H_
