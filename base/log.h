// The log of a process: levels, timestamps, rank. Lines go to standard error.
//
// Programs log by Log(). spdlog writes the lines; its header stays in log.cc, as LibTorch's include
// folder holds another version of the fmt library. Progress bars and tables are for people and do
// not pass through here.
#ifndef TRITONRL_BASE_LOG_H_
#define TRITONRL_BASE_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Writes one line if `level` is not below the log's level. Any thread may call it.
void Log(LogLevel level, absl::string_view message);

struct LogOptions {
  std::string level = "info";  // debug, info, warning, error, off
  std::string format =
      "text";     // text: "2026-01-31T12:00:00.123 I rank 0 message"; json: one object
  int rank = -1;  // stands in each line; -1: the job has one process
};

// Sets the level and the form of this process's log lines. May be called again, for example once
// the rank is known. InvalidArgument names the value that is neither level nor format.
absl::Status SetUpLog(const LogOptions& options);

// Adds the rank to the lines of a log that SetUpLog has set up.
void SetLogRank(int rank);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_LOG_H_
