#include "exec/service/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxBytes = 64 << 10;
constexpr size_t kShortestToken = 32;

}  // namespace

absl::Status WritePrivateFile(const std::string& path, absl::string_view contents) {
  std::string temporary = absl::StrCat(path, ".tmp", getpid(), "XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);  // mode 600
  if (fd < 0) return ErrnoStatus(errno, "write", path);
  errno = 0;
  const ssize_t n = write(fd, contents.data(), contents.size());
  const bool written = n == static_cast<ssize_t>(contents.size()) && fsync(fd) == 0;
  int error = errno == 0 ? ENOSPC : errno;  // a short write sets none
  close(fd);
  if (written && rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  if (written) error = errno;
  unlink(temporary.c_str());
  return ErrnoStatus(error, "write", path);
}

absl::StatusOr<std::string> ReadPrivateFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, "read", path);
  absl::Cleanup closer = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "read", path);
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " holds a token and must be a plain file of this user with mode 600"));
  }
  std::string text(kMaxBytes, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = read(fd, text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read", path);
    if (n == 0) break;
    size += n;
  }
  text.resize(size);
  return text;
}

absl::StatusOr<std::string> NewToken() {
  unsigned char bytes[32];
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
    return ErrnoStatus(errno, "read", "random bytes");
  }
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes), sizeof(bytes)));
}

absl::StatusOr<std::string> TokenFromFile(const std::string& path, bool create) {
  if (create && !FileExists(path)) {
    ASSIGN_OR_RETURN(const std::string token, NewToken());
    RETURN_IF_ERROR(WritePrivateFile(path, token + "\n"));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadPrivateFile(path));
  std::string token(absl::StripAsciiWhitespace(text));
  if (token.size() < kShortestToken || token.find_first_of(" \t\r\n") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(path, " must hold one token of at least ",
                                                   kShortestToken, " characters and nothing else"));
  }
  return token;
}

bool EqualTokens(absl::string_view a, absl::string_view b) {
  // Hashes have one length, whatever the tokens'; and no early way out of the loop.
  const std::string x = Sha256Hex(a);
  const std::string y = Sha256Hex(b);
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference = difference | static_cast<unsigned char>(x[i] ^ y[i]);
  }
  return difference == 0;
}

}  // namespace tritonrl
