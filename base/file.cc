#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// Closes a descriptor at the end of a scope.
class FdCloser {
 public:
  explicit FdCloser(int fd) : fd_(fd) {}
  ~FdCloser() { Close(); }
  int Close() {
    int result = fd_ >= 0 ? close(fd_) : 0;
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

int RemoveEntry(const char* path, const struct stat*, int, struct FTW*) { return remove(path); }

}  // namespace

absl::Status ErrnoStatus(int error, const std::string& action, const std::string& path) {
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      code = absl::StatusCode::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = absl::StatusCode::kPermissionDenied;
      break;
    case EEXIST:
      code = absl::StatusCode::kAlreadyExists;
      break;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENOMEM:
      code = absl::StatusCode::kResourceExhausted;
      break;
  }
  return absl::Status(code, absl::StrCat("cannot ", action, " ", path, ": ", strerror(error)));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "read", path);
  FdCloser closer(fd);
  std::string contents;
  struct stat info;
  if (fstat(fd, &info) == 0 && info.st_size > 0) contents.reserve(info.st_size);
  std::vector<char> buffer(1 << 16);
  while (true) {
    ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "read", path);
    }
    if (n == 0) return contents;
    contents.append(buffer.data(), n);
  }
}

absl::Status WriteAll(int fd, absl::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    ssize_t n = write(fd, contents.data(), contents.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "write", path);
    }
    contents.remove_prefix(n);
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomic(const std::string& path, absl::string_view contents) {
  std::string temporary = absl::StrCat(path, ".tmp", getpid(), "XXXXXX");
  int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "write", path);
  FdCloser closer(fd);
  fchmod(fd, 0644);
  absl::Status status = WriteAll(fd, contents, path);
  if (status.ok() && fsync(fd) != 0) status = ErrnoStatus(errno, "write", path);
  if (closer.Close() != 0 && status.ok()) status = ErrnoStatus(errno, "write", path);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, "write", path);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  // The rename itself lies in the folder; some file systems refuse to sync folders, which is
  // then their choice of safety.
  int folder = open(DirName(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

absl::Status AppendToFile(const std::string& path, absl::string_view contents) {
  int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, "write", path);
  FdCloser closer(fd);
  RETURN_IF_ERROR(WriteAll(fd, contents, path));
  if (closer.Close() != 0) return ErrnoStatus(errno, "write", path);
  return absl::OkStatus();
}

absl::Status CreateDirectories(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("cannot create a folder with an empty name");
  for (size_t i = 1; i <= path.size(); ++i) {
    if (i != path.size() && path[i] != '/') continue;
    std::string part = path.substr(0, i);
    if (mkdir(part.c_str(), 0755) == 0) continue;
    int error = errno;
    if (DirectoryExists(part)) continue;
    if (error == EEXIST) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot create folder ", path, ": ", part, " is a file"));
    }
    return ErrnoStatus(error, "create folder", part);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) return ErrnoStatus(errno, "list folder", path);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    dirent* entry = readdir(dir);
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  int error = errno;
  closedir(dir);
  if (error != 0) return ErrnoStatus(error, "list folder", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status RemoveTree(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoStatus(errno, "remove", path);
  }
  // std::filesystem::remove_all would be taken from LibTorch's copy of it, which crashes.
  if (nftw(path.c_str(), RemoveEntry, 32, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, "remove", path);
  }
  return absl::OkStatus();
}

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool DirectoryExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<int64_t> FileSize(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "read", path);
  return static_cast<int64_t>(info.st_size);
}

absl::Status RenameFile(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return ErrnoStatus(errno, "rename", from);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeTempDirectory(const std::string& prefix) {
  std::string base = "/tmp";
  for (const char* name : {"TEST_TMPDIR", "TMPDIR"}) {
    const char* value = getenv(name);
    if (value != nullptr && *value != '\0') {
      base = value;
      break;
    }
  }
  std::string path = absl::StrCat(base, "/", prefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "create folder", path);
  return path;
}

std::string JoinPath(const std::string& a, const std::string& b) {
  if (a.empty() || (!b.empty() && b[0] == '/')) return b;
  if (b.empty()) return a;
  return a.back() == '/' ? a + b : a + "/" + b;
}

std::string BaseName(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string DirName(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string UserPath(const std::string& path) {
  if (path.empty() || path[0] == '/') return path;
  const char* base = getenv("BUILD_WORKING_DIRECTORY");
  if (base != nullptr && *base != '\0') return JoinPath(base, path);
  char buffer[4096];
  if (getcwd(buffer, sizeof(buffer)) == nullptr) return path;
  return JoinPath(buffer, path);
}

}  // namespace tritonrl
