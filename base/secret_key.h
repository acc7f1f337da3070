// A secret of this installation, and numbers that nobody can compute without it.
#ifndef TRITONRL_BASE_SECRET_KEY_H_
#define TRITONRL_BASE_SECRET_KEY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl {

class SecretKey {
 public:
  static constexpr size_t kBytes = 32;

  // A known key of zeros, for what needs no secret.
  SecretKey() : bytes_(kBytes, '\0') {}
  // InvalidArgument: not 64 hexadecimal digits.
  static absl::StatusOr<SecretKey> Parse(absl::string_view hex);
  // A new one, from the kernel's random numbers.
  static absl::StatusOr<SecretKey> Random();

  // HMAC-SHA256 of a text: its first 64 bits. Texts of different purposes begin differently.
  uint64_t Hash64(absl::string_view text) const;

  bool operator==(const SecretKey&) const = default;

 private:
  explicit SecretKey(std::string bytes) : bytes_(std::move(bytes)) {}
  friend absl::StatusOr<SecretKey> ReadOrMakeKey(const std::string& path);

  std::string bytes_;
};

// Reads the key in a file; makes the file, of mode 0600, with a random key, if it does not exist.
// Processes that do so at once get the same key. FailedPrecondition: the file is unreadable, is of
// another user, others can read it, or it has not 32 bytes. Other errors: the file, or its folder,
// cannot be made.
absl::StatusOr<SecretKey> ReadOrMakeKey(const std::string& path);

// The key of this installation: $TRITONRL_SEED_KEY (64 hexadecimal digits), else the file
// tritonrl/seed_key in $XDG_STATE_HOME or ~/.local/state. Without a home folder in which it can be
// made: one of this process, with a warning. InvalidArgument, FailedPrecondition: the variable or
// the file is wrong.
absl::StatusOr<SecretKey> InstallationKey();

}  // namespace tritonrl

#endif  // TRITONRL_BASE_SECRET_KEY_H_
