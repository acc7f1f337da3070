// Checksums of large files at the speed of several cores.
#ifndef TRITONRL_TRAINER_FILE_DIGEST_H_
#define TRITONRL_TRAINER_FILE_DIGEST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tritonrl {

constexpr int64_t kDigestPart = int64_t{64} << 20;

// SHA-256, as hex digits, of the SHA-256 (32 bytes each) of the file's parts of `part` bytes, which
// up to eight threads compute; `part` is at least 1. An empty file has no part. Errors: the file
// cannot be read, or there is no memory for it.
absl::StatusOr<std::string> DigestOfParts(const std::string& path, int64_t part = kDigestPart);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_FILE_DIGEST_H_
