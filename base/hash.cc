#include "base/hash.h"

#include <openssl/evp.h>

#include <new>

#include "absl/strings/escaping.h"

namespace tritonrl {
namespace {

// These libcrypto calls fail only if memory runs out.
void Check(int result) {
  if (result != 1) throw std::bad_alloc();
}

std::string Digest(absl::string_view data) {
  Sha256 hash;
  hash.Update(data);
  return hash.Finish();
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  Check(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::Update(absl::string_view data) {
  Check(EVP_DigestUpdate(context_.get(), data.data(), data.size()));
}

std::string Sha256::Finish() {
  std::string digest(32, '\0');
  auto* to = reinterpret_cast<unsigned char*>(digest.data());
  Check(EVP_DigestFinal_ex(context_.get(), to, nullptr));
  return digest;
}

std::string Sha256Hex(absl::string_view data) { return absl::BytesToHexString(Digest(data)); }

uint64_t Hash64(absl::string_view data) {
  uint64_t hash = 0;
  for (const unsigned char byte : Digest(data).substr(0, 8)) hash = hash << 8 | byte;
  return hash;
}

}  // namespace tritonrl
