// A text file line by line, of any length of file and with a bound on the length of a line.
#ifndef TRITONRL_BASE_LINE_READER_H_
#define TRITONRL_BASE_LINE_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

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

}  // namespace tritonrl

#endif  // TRITONRL_BASE_LINE_READER_H_
