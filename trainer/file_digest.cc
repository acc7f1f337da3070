#include "trainer/file_digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/numbered_work.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr int kMostThreads = 8;
constexpr int64_t kBlock = int64_t{1} << 20;
constexpr size_t kDigestBytes = 32;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    ok_ = context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  }
  void Update(const char* data, size_t size) {
    ok_ = ok_ && EVP_DigestUpdate(context_.get(), data, size) == 1;
  }
  absl::StatusOr<std::string> Finish() {
    std::string digest(kDigestBytes, '\0');
    auto* to = reinterpret_cast<unsigned char*>(digest.data());
    if (!ok_ || EVP_DigestFinal_ex(context_.get(), to, nullptr) != 1) {
      return absl::InternalError("libcrypto does not compute SHA-256");
    }
    return digest;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool ok_ = false;
};

// Of bytes [begin, end) of an open file, which pass through `block`.
absl::StatusOr<std::string> DigestOf(const std::string& path, int fd, int64_t begin, int64_t end,
                                     std::vector<char>* block) {
  block->resize(kBlock);
  Sha256 digest;
  for (int64_t at = begin; at < end;) {
    const ssize_t got = pread(fd, block->data(), std::min(kBlock, end - at), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read", path);
    if (got == 0) return absl::DataLossError(absl::StrCat(path, " ends too early"));
    digest.Update(block->data(), got);
    at += got;
  }
  return digest.Finish();
}

}  // namespace

absl::StatusOr<std::string> DigestOfParts(const std::string& path, int64_t part) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  std::vector<std::string> digests((size + part - 1) / part);
  std::vector<std::vector<char>> blocks(kMostThreads);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  const absl::Status status =
      ForEachNumber(kMostThreads, static_cast<int64_t>(digests.size()),
                    [&](int thread, int64_t i) -> absl::Status {
                      const int64_t begin = i * part, end = std::min(size, begin + part);
                      ASSIGN_OR_RETURN(digests[i], DigestOf(path, fd, begin, end, &blocks[thread]));
                      return absl::OkStatus();
                    });
  close(fd);
  if (absl::IsResourceExhausted(status)) return AddContext(status, path);
  RETURN_IF_ERROR(status);
  Sha256 all;
  for (const std::string& digest : digests) all.Update(digest.data(), digest.size());
  ASSIGN_OR_RETURN(const std::string digest, all.Finish());
  return absl::BytesToHexString(digest);
}

}  // namespace tritonrl
