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
#include "absl/types/span.h"
#include "base/file.h"

// JSONL files, one JSON object a line: a reader, and journals from which a killed run goes on.

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
  // A line above `max_bytes` is skipped and returned with too_long. FailedPrecondition for
  // anything but a regular file.
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path,
                                                          int64_t max_bytes);
  // The next line; nothing at the end of the file.
  absl::StatusOr<std::optional<Line>> Next();
  int64_t offset() const { return offset_; }  // of the next line

 private:
  LineReader(std::string path, int fd, int64_t max_bytes)
      : path_(std::move(path)), fd_(fd), max_bytes_(max_bytes) {}
  absl::Status Fill();

  const std::string path_;
  const ScopedFd fd_;
  const int64_t max_bytes_;
  std::string buffer_;
  size_t used_ = 0;  // bytes of buffer_ already handed out
  int64_t offset_ = 0;
  int64_t number_ = 0;
  bool end_ = false;
};

// A file of lines to which a program appends. Each append is one write, so that a kill tears at
// most the last line, which the next Open cuts off.
class JsonlJournal {
 public:
  static constexpr int64_t kMaxLineBytes = 64 << 20;  // enough for any line of a run folder

  enum class Lock {
    kExclusive,  // The journal holds the file open and locked: one process at a time writes it.
    kNone,       // Every append opens the file; the first one creates it. Processes may share it.
  };

  // Called for each complete line of a file. False drops the line from the file; an error ends
  // Open.
  using LineFilter = std::function<absl::StatusOr<bool>(const Line&)>;

  // Passes the complete lines of `path` to `each` and cuts off a torn last line. Lines above
  // `max_bytes` are passed with too_long. The file is replaced atomically when a line is dropped.
  // kExclusive creates a missing file. FailedPrecondition: another process holds the lock, or the
  // path is no regular file.
  static absl::StatusOr<std::unique_ptr<JsonlJournal>> Open(const std::string& path,
                                                            int64_t max_bytes,
                                                            const LineFilter& each,
                                                            Lock lock = Lock::kExclusive);

  // Opens an empty file with an exclusive lock; creates its folder.
  static absl::StatusOr<std::unique_ptr<JsonlJournal>> Create(const std::string& path);

  // Writes the lines, each with a line break. The kernel has them when this returns. Not
  // thread-safe.
  absl::Status Append(const std::string& line) { return AppendLines({line}); }
  // No lines: checks that the file can be written.
  absl::Status AppendLines(absl::Span<const std::string> lines);

  const std::string& path() const { return path_; }

 private:
  JsonlJournal(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  static absl::StatusOr<std::unique_ptr<JsonlJournal>> OpenLocked(const std::string& path);

  const std::string path_;
  const ScopedFd fd_;  // not valid without a lock
};

using MetricValue = std::variant<double, int64_t, std::string, bool>;
using MetricFields = std::vector<std::pair<std::string, MetricValue>>;  // order kept in the file

// One JSON object without line break. NaN and infinity become null.
std::string MetricsLine(int64_t step, const MetricFields& fields);

// Whether `line` is a JSON object whose integer "step" is below `next_step`: what a run that
// resumes at `next_step` keeps.
bool IsBeforeStep(const std::string& line, int64_t next_step);

// metrics.jsonl: one line a step.
class MetricsLog {
 public:
  // Drops the lines that are not before `next_step`, so that a resumed run writes each step once.
  // next_step = 0 starts empty.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(const std::string& path,
                                                          int64_t next_step);

  // Writes {"step":step, ...} as one line.
  absl::Status Append(int64_t step, const MetricFields& fields) {
    return journal_->Append(MetricsLine(step, fields));
  }

 private:
  explicit MetricsLog(std::unique_ptr<JsonlJournal> journal) : journal_(std::move(journal)) {}
  std::unique_ptr<JsonlJournal> journal_;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_JSONL_H_
