// The log of a process: levels, timestamps, rank. Lines go to standard error.
//
// Programs log through spdlog: spdlog::info("request {} took {:.1f} ms", id, ms). Progress bars and
// tables are for people and do not pass through here.
#ifndef TRITONRL_BASE_LOG_H_
#define TRITONRL_BASE_LOG_H_

#include <string>

#include "absl/status/status.h"

namespace tritonrl {

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
