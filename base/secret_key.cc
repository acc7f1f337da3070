#include "base/secret_key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr char kVariable[] = "TRITONRL_SEED_KEY";

absl::Status Unusable(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the key of this installation, ", path, ", ", why,
                   "; remove the file to get a new key, with other random inputs"));
}

// Puts `bytes` into a new file; does nothing if another process has just made it.
absl::Status MakeKeyFile(const std::string& path, const std::string& bytes) {
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);  // of mode 0600
  if (fd < 0) return ErrnoStatus(errno, "make", temporary);
  const auto remove = absl::MakeCleanup([&] { unlink(temporary.c_str()); });
  absl::Status written = WriteAll(fd, bytes, temporary);
  if (written.ok() && fsync(fd) != 0) written = ErrnoStatus(errno, "write", temporary);
  close(fd);
  RETURN_IF_ERROR(written);
  if (link(temporary.c_str(), path.c_str()) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, "make", path);
  }
  return absl::OkStatus();
}

// The folder of this user's state; "": there is none.
std::string StateFolder() {
  const char* const state = getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return state;
  const char* const home = getenv("HOME");
  if (home == nullptr || home[0] != '/' || access(home, W_OK | X_OK) != 0) return "";
  return JoinPath(home, ".local/state");
}

}  // namespace

absl::StatusOr<SecretKey> SecretKey::Parse(absl::string_view hex) {
  if (hex.size() != 2 * kBytes || !std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a key has ", 2 * kBytes, " hexadecimal digits"));
  }
  return SecretKey(absl::HexStringToBytes(hex));
}

absl::StatusOr<SecretKey> SecretKey::Random() {
  std::string bytes(kBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::InternalError("the kernel gives no random numbers");
  }
  return SecretKey(std::move(bytes));
}

uint64_t SecretKey::Hash64(absl::string_view text) const {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  // Fails only if memory runs out.
  if (HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
           &size) == nullptr) {
    throw std::bad_alloc();
  }
  uint64_t hash = 0;
  for (int i = 0; i < 8; ++i) hash = hash << 8 | digest[i];
  return hash;
}

absl::StatusOr<SecretKey> ReadOrMakeKey(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    RETURN_IF_ERROR(CreateDirectories(DirName(path)));
    ASSIGN_OR_RETURN(const SecretKey made, SecretKey::Random());
    RETURN_IF_ERROR(MakeKeyFile(path, made.bytes_));
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Unusable(path, absl::StrCat("cannot be read: ", strerror(errno)));
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "look at", path);
  if (!S_ISREG(info.st_mode) || info.st_size != SecretKey::kBytes) {
    return Unusable(path, absl::StrCat("is not a file of ", SecretKey::kBytes, " bytes"));
  }
  if ((info.st_uid != geteuid() && geteuid() != 0) || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Unusable(path, "is not this user's alone (chmod 600)");
  }
  std::string bytes(SecretKey::kBytes, '\0');
  RETURN_IF_ERROR(ReadAt(fd, 0, static_cast<int64_t>(bytes.size()), bytes.data(), path));
  return SecretKey(std::move(bytes));
}

absl::StatusOr<SecretKey> InstallationKey() {
  if (const char* const hex = getenv(kVariable); hex != nullptr && hex[0] != '\0') {
    absl::StatusOr<SecretKey> key = SecretKey::Parse(hex);
    if (!key.ok()) return AddContext(key.status(), kVariable);
    return key;
  }
  const std::string folder = StateFolder();
  absl::Status error = absl::NotFoundError("there is no home folder");
  if (!folder.empty()) {
    absl::StatusOr<SecretKey> key = ReadOrMakeKey(JoinPath(folder, "tritonrl/seed_key"));
    if (key.ok() || absl::IsFailedPrecondition(key.status())) return key;
    error = key.status();
  }
  static const absl::StatusOr<SecretKey> of_process = SecretKey::Random();
  Log(LogLevel::kWarning,
      absl::StrCat("random inputs will be others in the next process, as the key of this "
                   "installation cannot be kept: ",
                   Message(error), "; ", kVariable, " can give one"));
  return of_process;
}

}  // namespace tritonrl
