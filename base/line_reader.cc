#include "base/line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr size_t kBlock = 1 << 18;

}  // namespace

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path,
                                                             int64_t max_bytes) {
  // Without O_NONBLOCK a pipe would hold the call until somebody writes.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, "read", path);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ": not a plain file"));
  }
  return std::unique_ptr<LineReader>(new LineReader(path, fd, max_bytes));
}

LineReader::~LineReader() { close(fd_); }

absl::Status LineReader::Fill() {
  if (used_ > 0) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  const size_t before = buffer_.size();
  buffer_.resize(before + kBlock);
  ssize_t n;
  do {
    n = read(fd_, buffer_.data() + before, kBlock);
  } while (n < 0 && errno == EINTR);
  buffer_.resize(before + (n > 0 ? n : 0));
  if (n < 0) return ErrnoStatus(errno, "read", path_);
  end_ = n == 0;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Line>> LineReader::Next() {
  Line line{.number = number_ + 1, .offset = offset_};
  size_t searched = used_;
  size_t at;
  int64_t passed_over = 0;
  while ((at = buffer_.find('\n', searched)) == std::string::npos && !end_) {
    if (static_cast<int64_t>(buffer_.size() - used_) > max_bytes_) {
      line.too_long = true;
      passed_over += static_cast<int64_t>(buffer_.size() - used_);
      used_ = buffer_.size();
    }
    const size_t kept = buffer_.size() - used_;
    RETURN_IF_ERROR(Fill());
    searched = kept;
  }
  line.complete = at != std::string::npos;
  const size_t length = (line.complete ? at : buffer_.size()) - used_;
  const int64_t whole = passed_over + static_cast<int64_t>(length);
  if (!line.complete && whole == 0) return std::optional<Line>();
  line.too_long = line.too_long || whole > max_bytes_;
  if (!line.too_long) line.text = buffer_.substr(used_, length);
  used_ += length + (line.complete ? 1 : 0);
  offset_ += whole + (line.complete ? 1 : 0);
  ++number_;
  return std::optional<Line>(std::move(line));
}

}  // namespace tritonrl
