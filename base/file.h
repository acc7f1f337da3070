// Files and folders. Every error names the path and the system's reason.
#ifndef TRITONRL_BASE_FILE_H_
#define TRITONRL_BASE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

// The whole file. NotFound when it is missing, PermissionDenied, or Unavailable with the reason.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Lets `write` fill a temporary file in the same folder, syncs it, renames it over `path` and syncs
// the folder: after a crash `path` holds either the old or the new contents, never half of one.
// On failure (disk full, no permission) the old file is untouched and nothing is left behind.
absl::Status ReplaceFile(const std::string& path, absl::FunctionRef<absl::Status(int fd)> write,
                         int mode = 0644);
absl::Status WriteFileAtomic(const std::string& path, absl::string_view contents, int mode = 0644);

// Appends in one write; creates the file when missing. A crash may tear the last line.
absl::Status AppendToFile(const std::string& path, absl::string_view contents);

// Owns a file descriptor.
class ScopedFd {
 public:
  explicit ScopedFd(int fd) : fd_(fd) {}
  ~ScopedFd() { Close(); }
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Close();  // the result of close(); 0 when already closed

 private:
  int fd_;
};

// Writes all of `contents` to an open file; errors name `path`.
absl::Status WriteAll(int fd, absl::string_view contents, const std::string& path);

// Reads exactly `size` bytes at `offset`; errors name `path`. DataLoss when the file ends before.
absl::Status ReadAt(int fd, int64_t offset, int64_t size, char* to, const std::string& path);

// mkdir -p with mode 0755. Fine when it exists; FailedPrecondition when a file is in the way.
absl::Status CreateDirectories(const std::string& path);

// Names (not paths) in a folder, sorted by bytes, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Removes a file or a folder with all in it; does not follow links. Fine when it does not exist.
absl::Status RemoveTree(const std::string& path);

bool FileExists(const std::string& path);       // anything by that name, links followed
bool DirectoryExists(const std::string& path);  // a folder, links followed

// Size in bytes.
absl::StatusOr<int64_t> FileSize(const std::string& path);

// Atomic on one file system.
absl::Status RenameFile(const std::string& from, const std::string& to);

// A fresh folder (mode 0700) named prefix + random letters below $TEST_TMPDIR, $TMPDIR or /tmp.
// The caller removes it with RemoveTree.
absl::StatusOr<std::string> MakeTempDirectory(const std::string& prefix);

// "a", "b/c" -> "a/b/c"; an absolute second part wins.
std::string JoinPath(const std::string& a, const std::string& b);

// Last component, and all before it ("." when there is none).
std::string BaseName(const std::string& path);
std::string DirName(const std::string& path);

// `path` made absolute against the folder the person stands in: under `bazel run` that is
// $BUILD_WORKING_DIRECTORY, not the process's own working directory.
std::string UserPath(const std::string& path);

// An absl::Status for errno value `error`: "cannot <action> <path>: <reason>".
absl::Status ErrnoStatus(int error, const std::string& action, const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_FILE_H_
