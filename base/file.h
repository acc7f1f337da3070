// Functions for files and folders. Every error names the path and the text of errno.
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

// Returns the whole file. Errors: those of ErrnoStatus, e.g. NotFound if the file is missing.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Lets `write` fill a temporary file in the same folder, syncs it, renames it over `path` and syncs
// the folder: after a crash `path` holds either the complete old or the complete new contents.
// After an error (disk full, no permission) the old file is unchanged and the temporary file is
// removed.
absl::Status ReplaceFile(const std::string& path, absl::FunctionRef<absl::Status(int fd)> write,
                         int mode = 0644);
// ReplaceFile with `contents`.
absl::Status WriteFileAtomic(const std::string& path, absl::string_view contents, int mode = 0644);

// Appends `contents`, normally in one write(); creates a missing file. An error removes a partly
// written text again; a crash may leave the last line incomplete.
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
  int Close();  // returns the result of close(), or 0 if already closed
  void Reset(int fd) {
    Close();
    fd_ = fd;
  }

 private:
  int fd_;
};

// Writes all of `contents` to an open file; errors name `path`.
absl::Status WriteAll(int fd, absl::string_view contents, const std::string& path);

// Reads exactly `size` bytes at `offset` to `to`; errors name `path`. DataLoss if the file is
// shorter.
absl::Status ReadAt(int fd, int64_t offset, int64_t size, char* to, const std::string& path);

// Creates the folder and its missing parents with mode 0755; an existing folder is no error.
// FailedPrecondition if a part of the path is a file.
absl::Status CreateDirectories(const std::string& path);

// Returns the names (not paths) in a folder, sorted by bytes, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Removes a file, or a folder with its contents; does not follow links. A missing path is no error.
absl::Status RemoveTree(const std::string& path);

bool FileExists(const std::string& path);       // file of any type; follows links
bool DirectoryExists(const std::string& path);  // folder; follows links

// Size in bytes.
absl::StatusOr<int64_t> FileSize(const std::string& path);

// Atomic on one file system.
absl::Status RenameFile(const std::string& from, const std::string& to);

// Creates a folder (mode 0700) named `prefix` + random letters in $TEST_TMPDIR, $TMPDIR or /tmp,
// the first that is set. The caller removes it with RemoveTree.
absl::StatusOr<std::string> MakeTempDirectory(const std::string& prefix);

// "a", "b/c" -> "a/b/c"; returns `b` if it is absolute.
std::string JoinPath(const std::string& a, const std::string& b);

// The last component of a path, and the folder before it ("." if the path has no slash).
std::string BaseName(const std::string& path);
std::string DirName(const std::string& path);

// Makes `path` absolute, relative to the user's working folder: under `bazel run` that is
// $BUILD_WORKING_DIRECTORY, not the working folder of the process.
std::string UserPath(const std::string& path);

// The absl::Status of errno value `error`, with the message "cannot <action> <path>: <reason>":
// NotFound, PermissionDenied, AlreadyExists, ResourceExhausted (disk, descriptors, memory), or
// Unavailable for all other values. For a full disk the message also says to make room.
absl::Status ErrnoStatus(int error, const std::string& action, const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_FILE_H_
