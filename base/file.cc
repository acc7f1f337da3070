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
  std::string text = absl::StrCat("cannot ", action, " ", path, ": ", strerror(error));
  if (error == ENOSPC || error == EDQUOT) {
    absl::StrAppend(&text, "; make room there and run the same command again");
  }
  return absl::Status(code, text);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "read", path);
  std::string contents;
  struct stat info;
  if (fstat(fd.get(), &info) == 0 && info.st_size > 0) contents.reserve(info.st_size);
  std::vector<char> buffer(1 << 16);
  while (true) {
    ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "read", path);
    }
    if (n == 0) return contents;
    contents.append(buffer.data(), n);
  }
}

int ScopedFd::Close() {
  const int result = fd_ >= 0 ? close(fd_) : 0;
  fd_ = -1;
  return result;
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

absl::Status ReadAt(int fd, int64_t offset, int64_t size, char* to, const std::string& path) {
  while (size > 0) {
    const ssize_t n = pread(fd, to, size, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read", path);
    if (n == 0) return absl::DataLossError(absl::StrCat(path, ": the file ends too early"));
    to += n;
    offset += n;
    size -= n;
  }
  return absl::OkStatus();
}

absl::Status ReplaceFile(const std::string& path, absl::FunctionRef<absl::Status(int fd)> write,
                         int mode) {
  std::string temporary = absl::StrCat(path, ".tmp", getpid(), "XXXXXX");
  ScopedFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "write", path);
  fchmod(fd.get(), mode);
  absl::Status status = write(fd.get());
  if (status.ok() && fsync(fd.get()) != 0) status = ErrnoStatus(errno, "write", path);
  if (fd.Close() != 0 && status.ok()) status = ErrnoStatus(errno, "write", path);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, "write", path);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  // The rename is durable only when the folder is synced. Some file systems cannot sync folders,
  // so errors are ignored.
  const ScopedFd folder(open(DirName(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) fsync(folder.get());
  return absl::OkStatus();
}

absl::Status WriteFileAtomic(const std::string& path, absl::string_view contents, int mode) {
  return ReplaceFile(
      path, [&](int fd) { return WriteAll(fd, contents, path); }, mode);
}

absl::Status AppendToFile(const std::string& path, absl::string_view contents) {
  ScopedFd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, "write", path);
  struct stat before = {}, after = {};
  if (fstat(fd.get(), &before) != 0) return ErrnoStatus(errno, "read", path);
  absl::Status written = WriteAll(fd.get(), contents, path);
  // A full disk may take only a part of the text. This part is cut off, so that the next append
  // begins at the start of a line.
  if (!written.ok() && S_ISREG(before.st_mode) && fstat(fd.get(), &after) == 0 &&
      after.st_size - before.st_size < static_cast<off_t>(contents.size())) {
    (void)!ftruncate(fd.get(), before.st_size);
  }
  RETURN_IF_ERROR(written);
  return fd.Close() == 0 ? absl::OkStatus() : ErrnoStatus(errno, "write", path);
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
  // Not std::filesystem::remove_all: the linker would take LibTorch's copy of it, which crashes.
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
