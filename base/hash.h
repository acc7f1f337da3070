// SHA-256 (FIPS 180-4) from libcrypto. Hashes are equal on all machines and in all versions.
#ifndef TRITONRL_BASE_HASH_H_
#define TRITONRL_BASE_HASH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace tritonrl {

// Hashes data in parts. Throws std::bad_alloc if memory runs out.
class Sha256 {
 public:
  Sha256();
  void Update(absl::string_view data);
  std::string Finish();  // 32 bytes; the object must not be used afterwards

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

// SHA-256 as 64 lower-case hex digits.
std::string Sha256Hex(absl::string_view data);

// The first eight bytes of SHA-256, big-endian: a stable 64-bit hash for keys and caches.
uint64_t Hash64(absl::string_view data);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_HASH_H_
