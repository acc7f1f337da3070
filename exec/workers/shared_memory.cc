#include "exec/workers/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tritonrl {

absl::StatusOr<SharedMemory> SharedMemory::Create(const std::string& name, uint64_t bytes) {
  SharedMemory memory;
  memory.fd_ = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory.fd_ < 0) return ErrnoStatus(errno, "make", absl::StrCat("a memory file ", name));
  // mmap refuses a length of 0.
  memory.bytes_ = bytes > 0 ? bytes : 1;
  if (ftruncate(memory.fd_, static_cast<off_t>(memory.bytes_)) != 0 ||
      fcntl(memory.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return ErrnoStatus(errno, "size and seal", absl::StrCat("a memory file of ", bytes, " bytes"));
  }
  return memory;
}

absl::StatusOr<SharedMemory> SharedMemory::Adopt(int fd) {
  SharedMemory memory;
  memory.fd_ = fd;
  struct stat info;
  constexpr int kSized = F_SEAL_SHRINK | F_SEAL_GROW;
  if (fstat(fd, &info) != 0 || (fcntl(fd, F_GET_SEALS) & kSized) != kSized || info.st_size <= 0) {
    return absl::InvalidArgumentError("a job's memory file has no fixed size");
  }
  memory.bytes_ = static_cast<uint64_t>(info.st_size);
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this == &other) return *this;
  Release();
  fd_ = std::exchange(other.fd_, -1);
  bytes_ = std::exchange(other.bytes_, 0);
  mapped_ = std::exchange(other.mapped_, 0);
  sealed_ = std::exchange(other.sealed_, false);
  map_ = std::exchange(other.map_, nullptr);
  return *this;
}

SharedMemory::~SharedMemory() { Release(); }

void SharedMemory::Release() {
  if (map_ != nullptr) munmap(map_, mapped_);
  if (fd_ >= 0) close(fd_);
  map_ = nullptr;
  fd_ = -1;
}

absl::Status SharedMemory::Seal() {
  const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  (void)fcntl(fd_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL);
  sealed_ = (fcntl(fd_, F_GET_SEALS) & all) == all;
  if (sealed_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a job's memory cannot be sealed: it is still mapped for writing, or carries foreign seals");
}

absl::StatusOr<absl::string_view> SharedMemory::Map(uint64_t bytes) {
  if (map_ == nullptr) {
    const uint64_t length = std::clamp<uint64_t>(bytes, 1, bytes_);
    // Before kernel 6.7 a write-sealed file may not be mapped shared, even for reading.
    const int kind = sealed_ ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
    void* map = mmap(nullptr, length, PROT_READ, kind, fd_, 0);
    if (map == MAP_FAILED) {
      return ErrnoStatus(errno, "map", absl::StrCat("a memory file of ", length, " bytes"));
    }
    map_ = map;
    mapped_ = length;
  }
  return view();
}

int64_t SharedMemory::resident_bytes() const {
  struct stat info;
  if (fd_ < 0 || fstat(fd_, &info) != 0) return 0;
  return static_cast<int64_t>(info.st_blocks) * 512;
}

}  // namespace tritonrl
