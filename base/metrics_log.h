// metrics.jsonl: one JSON object a line, one line a step, safe against a kill at any moment.
#ifndef TRITONRL_BASE_METRICS_LOG_H_
#define TRITONRL_BASE_METRICS_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

using MetricValue = std::variant<double, int64_t, std::string, bool>;
using MetricFields = std::vector<std::pair<std::string, MetricValue>>;  // order kept in the file

// One JSON object without line break. Numbers that are no JSON numbers (NaN, infinity) become
// null.
std::string MetricsLine(int64_t step, const MetricFields& fields);

class MetricsLog {
 public:
  // Opens for appending. Lines that begin after the resume point (their "step" >= `next_step`)
  // and a torn last line are cut off first, so that a resumed run writes each step once.
  // next_step = 0 starts empty.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(const std::string& path,
                                                          int64_t next_step);

  // Writes {"step":step, ...} as one line, out of this process when it returns.
  absl::Status Append(int64_t step, const MetricFields& fields);

 private:
  explicit MetricsLog(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Cuts the lines of a .jsonl file whose integer field `key` is >= `next`, and a torn last line;
// rewrites the file atomically only when something goes. Fine when the file is missing.
absl::Status TruncateJsonLines(const std::string& path, const std::string& key, int64_t next);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_METRICS_LOG_H_
