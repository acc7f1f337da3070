#include "trainer/file_digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/status.h"
#include "base/thread_pool.h"

namespace tritonrl {
namespace {

constexpr int64_t kMostThreads = 8;
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

// An open file whose parts threads take one after the other.
class Parts {
 public:
  Parts(std::string path, int fd, int64_t size, int64_t part)
      : path_(std::move(path)), fd_(fd), size_(size), part_(part) {
    digests_.resize((size + part - 1) / part);
  }
  ~Parts() { close(fd_); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  absl::StatusOr<std::string> Digest() {
    const int threads =
        static_cast<int>(std::min<int64_t>(kMostThreads, static_cast<int64_t>(digests_.size())));
    if (threads > 1) {
      ThreadPool pool(threads);
      for (int i = 0; i < threads; ++i) pool.Schedule([this] { Work(); });
    } else {
      Work();
    }
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(status_);
    Sha256 all;
    for (const std::string& digest : digests_) all.Update(digest.data(), digest.size());
    ASSIGN_OR_RETURN(const std::string digest, all.Finish());
    return absl::BytesToHexString(digest);
  }

 private:
  void Work() {
    absl::Status status;
    try {
      status = TakeParts();
    } catch (const std::bad_alloc&) {
      status = absl::ResourceExhaustedError(absl::StrCat("out of memory for checking ", path_));
    }
    if (status.ok()) return;
    failed_ = true;
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
  }

  absl::Status TakeParts() {
    std::vector<char> block(std::min(kBlock, part_));
    while (!failed_) {
      const size_t number = next_++;
      if (number >= digests_.size()) break;
      Sha256 digest;
      const int64_t begin = static_cast<int64_t>(number) * part_;
      const int64_t end = std::min(size_, begin + part_);
      for (int64_t at = begin; at < end;) {
        const auto wanted = std::min<int64_t>(static_cast<int64_t>(block.size()), end - at);
        const ssize_t got = pread(fd_, block.data(), wanted, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return ErrnoStatus(errno, "read", path_);
        if (got == 0) return absl::DataLossError(absl::StrCat(path_, " ends too early"));
        digest.Update(block.data(), got);
        at += got;
      }
      ASSIGN_OR_RETURN(digests_[number], digest.Finish());
    }
    return absl::OkStatus();
  }

  const std::string path_;
  const int fd_;
  const int64_t size_, part_;
  std::vector<std::string> digests_;  // each written by one thread
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::string> DigestOfParts(const std::string& path, int64_t part) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  return Parts(path, fd, size, part).Digest();
}

}  // namespace tritonrl
