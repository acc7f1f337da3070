// A file of lines to which a program appends, so that a killed run can go on with what it wrote.
#ifndef TRITONRL_BASE_LINE_FILE_H_
#define TRITONRL_BASE_LINE_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/line_reader.h"

namespace tritonrl {

class LineFile {
 public:
  // Opens or creates the file for this process alone, shows each whole line that is there to
  // `each`, whose error ends it, and cuts off a torn last line. FailedPrecondition when another
  // process is writing the file, or when it is no plain file. Lines above `max_bytes` come as
  // too_long.
  static absl::StatusOr<std::unique_ptr<LineFile>> Open(
      const std::string& path, int64_t max_bytes,
      const std::function<absl::Status(const Line&)>& each);

  // The same for a file that begins anew; its folder is made.
  static absl::StatusOr<std::unique_ptr<LineFile>> Create(const std::string& path);

  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Writes the line and a line break in one go; they have left this process when this returns. One
  // thread at a time.
  absl::Status Append(const std::string& line);

  const std::string& path() const { return path_; }

 private:
  LineFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  static absl::StatusOr<std::unique_ptr<LineFile>> OpenAlone(const std::string& path);

  const std::string path_;
  const int fd_;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_LINE_FILE_H_
