// Hashes that are the same on every machine and in every version.
#ifndef TRITONRL_BASE_HASH_H_
#define TRITONRL_BASE_HASH_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tritonrl {

// SHA-256 (FIPS 180-4) as 64 lower-case hex digits.
std::string Sha256Hex(absl::string_view data);

// First eight bytes of SHA-256, big-endian: a stable 64-bit hash for keys and caches.
uint64_t Hash64(absl::string_view data);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_HASH_H_
