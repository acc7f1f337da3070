#include "base/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<LineFile>> LineFile::OpenAlone(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd < 0) return ErrnoStatus(errno, "write", path);
  std::unique_ptr<LineFile> file(new LineFile(path, fd));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": not a plain file"));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is being written by another process; wait for it"));
  }
  return file;
}

absl::StatusOr<std::unique_ptr<LineFile>> LineFile::Open(
    const std::string& path, int64_t max_bytes,
    const std::function<absl::Status(const Line&)>& each) {
  ASSIGN_OR_RETURN(std::unique_ptr<LineFile> file, OpenAlone(path));
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path, max_bytes));
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Line> line, lines->Next());
    if (!line.has_value()) return file;
    if (!line->complete) {
      // A kill in the middle of a write.
      if (ftruncate(file->fd_, line->offset) != 0) return ErrnoStatus(errno, "cut", path);
      return file;
    }
    RETURN_IF_ERROR(each(*line));
  }
}

absl::StatusOr<std::unique_ptr<LineFile>> LineFile::Create(const std::string& path) {
  RETURN_IF_ERROR(CreateDirectories(DirName(path)));
  ASSIGN_OR_RETURN(std::unique_ptr<LineFile> file, OpenAlone(path));
  if (ftruncate(file->fd_, 0) != 0) return ErrnoStatus(errno, "empty", path);
  return file;
}

LineFile::~LineFile() { close(fd_); }

absl::Status LineFile::Append(const std::string& line) {
  const std::string bytes = line + "\n";
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = write(fd_, bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "write", path_);
    written += n;
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
