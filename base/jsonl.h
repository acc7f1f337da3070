// JSONL files, one JSON object per line: a line reader, and journals that a restarted run continues
// after a kill.
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
#include "base/disk_room.h"
#include "base/file.h"

namespace tritonrl {

// A line of a file.
struct Line {
  std::string text;      // without the line break; empty when too_long
  int64_t number = 0;    // 1-based
  int64_t offset = 0;    // of its first byte in the file
  bool complete = true;  // false: the file ends without a line break after this line
  bool too_long = false;
};

// Reads a file line by line; holds about `max_bytes` at most in memory.
class LineReader {
 public:
  // Next() returns a line longer than `max_bytes` without its text, with too_long set.
  // FailedPrecondition if `path` is no regular file.
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path,
                                                          int64_t max_bytes);
  // Returns the next line, or nullopt at the end of the file.
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
  size_t used_ = 0;  // bytes of buffer_ already returned or skipped
  int64_t offset_ = 0;
  int64_t number_ = 0;
  bool end_ = false;
};

// A file of lines to which a program appends. Each append is one write, so that a kill leaves at
// most the last line incomplete; the next Open removes that line.
class JsonlJournal {
 public:
  static constexpr int64_t kMaxLineBytes = 64 << 20;  // above any line of a run folder's files

  enum class Lock {
    kExclusive,  // The journal keeps the file open and locked, so that only one process writes it.
    kNone,       // Every append opens the file; the first creates it. Several processes may append.
  };

  // Open calls it for each complete line of the file. If it returns false, Open removes the line
  // from the file; an error ends Open.
  using LineFilter = std::function<absl::StatusOr<bool>(const Line&)>;

  // Passes the complete lines of `path` to `each` and removes an incomplete last line. Lines above
  // `max_bytes` are passed with too_long. If `each` removes lines, the file is replaced atomically.
  // kExclusive creates a missing file. FailedPrecondition: another process holds the lock, or
  // `path` is no regular file.
  static absl::StatusOr<std::unique_ptr<JsonlJournal>> Open(const std::string& path,
                                                            int64_t max_bytes,
                                                            const LineFilter& each,
                                                            Lock lock = Lock::kExclusive);

  // Opens an empty file with an exclusive lock; creates its folder.
  static absl::StatusOr<std::unique_ptr<JsonlJournal>> Create(const std::string& path);

  // Appends the lines, each with a line break. They are handed to the kernel, but not synced, when
  // this returns. Not thread-safe.
  absl::Status Append(const std::string& line) { return AppendLines({line}); }
  // Without lines it only checks that the file can be written.
  absl::Status AppendLines(absl::Span<const std::string> lines);

  // Reserves room for `bytes` more bytes, so that what is appended next cannot fail because the
  // disk is full (DiskRoom, which has the errors). A program calls it with all that is under way
  // before it starts something that the journal must keep. The reservation ends with the journal.
  // No other process may append meanwhile.
  absl::Status Reserve(int64_t bytes) { return room_.Reserve(bytes); }

  const std::string& path() const { return path_; }

 private:
  JsonlJournal(std::string path, int fd) : path_(std::move(path)), fd_(fd), room_(path_) {}
  static absl::StatusOr<std::unique_ptr<JsonlJournal>> OpenLocked(const std::string& path);

  const std::string path_;
  const ScopedFd fd_;  // holds the lock; not valid with Lock::kNone
  DiskRoom room_;      // ends before the lock
};

using MetricValue = std::variant<double, int64_t, std::string, bool>;
using MetricFields = std::vector<std::pair<std::string, MetricValue>>;  // in the file's order

// Returns {"step":step, ...} as one JSON object without a line break. NaN and infinity become null.
std::string MetricsLine(int64_t step, const MetricFields& fields);

// Returns whether `line` is a JSON object whose integer "step" is below `next_step`. A run that
// resumes at `next_step` keeps these lines.
bool IsBeforeStep(const std::string& line, int64_t next_step);

// Writes metrics.jsonl, one line per step.
class MetricsLog {
 public:
  // Removes the lines of steps from `next_step` on, so that a resumed run writes each step once.
  // next_step = 0 removes all lines.
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
