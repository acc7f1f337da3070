#ifndef TRITONRL_BASE_JSONL_H_
#define TRITONRL_BASE_JSONL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// A text file line by line, of any length of file and with a bound on the length of a line.
//
// A file of lines to which a program appends, so that a killed run can go on with what it wrote.
//
// metrics.jsonl: one JSON object a line, one line a step, safe against a kill at any moment.

namespace tritonrl {

struct Line {
  std::string text;      // without the line break; empty when too_long
  int64_t number = 0;    // 1-based
  int64_t offset = 0;    // of its first byte in the file
  bool complete = true;  // false: the file ends without a line break after it
  bool too_long = false;
};

class LineReader {
 public:
  // Lines above `max_bytes` are passed over and come back with too_long. FailedPrecondition for
  // anything but a regular file.
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path,
                                                          int64_t max_bytes);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line; nothing at the end of the file.
  absl::StatusOr<std::optional<Line>> Next();

 private:
  LineReader(std::string path, int fd, int64_t max_bytes)
      : path_(std::move(path)), fd_(fd), max_bytes_(max_bytes) {}
  absl::Status Fill();

  const std::string path_;
  const int fd_;
  const int64_t max_bytes_;
  std::string buffer_;
  size_t used_ = 0;  // bytes of buffer_ already handed out
  int64_t offset_ = 0;
  int64_t number_ = 0;
  bool end_ = false;
};

class JsonlJournal {
 public:
  // Opens or creates the file for this process alone, shows each whole line that is there to
  // `each`, whose error ends it, and cuts off a torn last line. FailedPrecondition when another
  // process is writing the file, or when it is no plain file. Lines above `max_bytes` come as
  // too_long.
  static absl::StatusOr<std::unique_ptr<JsonlJournal>> Open(
      const std::string& path, int64_t max_bytes,
      const std::function<absl::Status(const Line&)>& each);

  // The same for a file that begins anew; its folder is made.
  static absl::StatusOr<std::unique_ptr<JsonlJournal>> Create(const std::string& path);

  ~JsonlJournal();
  JsonlJournal(const JsonlJournal&) = delete;
  JsonlJournal& operator=(const JsonlJournal&) = delete;

  // Writes the line and a line break in one go; they have left this process when this returns. One
  // thread at a time.
  absl::Status Append(const std::string& line);

  const std::string& path() const { return path_; }

 private:
  JsonlJournal(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  static absl::StatusOr<std::unique_ptr<JsonlJournal>> OpenAlone(const std::string& path);

  const std::string path_;
  const int fd_;
};

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

#endif  // TRITONRL_BASE_JSONL_H_
