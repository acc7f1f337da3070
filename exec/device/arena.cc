#include "exec/device/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tritonrl::device {
namespace {

int64_t RoundUp(int64_t bytes) {
  return (bytes + Arena::kBlockBytes - 1) / Arena::kBlockBytes * Arena::kBlockBytes;
}

constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(uintptr_t base, int64_t bytes) {
  void* const wanted = reinterpret_cast<void*>(base);
  const int flags = kFlags | (base == 0 ? 0 : MAP_FIXED_NOREPLACE);
  void* const got = mmap(wanted, static_cast<size_t>(bytes), PROT_NONE, flags, -1, 0);
  if (got == MAP_FAILED || (base != 0 && got != wanted)) {
    const int error = got == MAP_FAILED ? errno : EEXIST;
    if (got != MAP_FAILED) munmap(got, static_cast<size_t>(bytes));
    return absl::FailedPreconditionError(
        absl::StrCat("the arena's addresses are not free: ", strerror(error)));
  }
  return std::unique_ptr<Arena>(new Arena(static_cast<char*>(got), bytes));
}

Arena::~Arena() { munmap(base_, static_cast<size_t>(bytes_)); }

absl::StatusOr<char*> Arena::Reserve(int64_t bytes) {
  if (bytes < 0 || bytes > bytes_) return absl::ResourceExhaustedError("a storage is too large");
  const int64_t take = std::max(RoundUp(bytes), kBlockBytes) + kGuardBytes;
  if (take > bytes_ - static_cast<int64_t>(used_)) {
    return absl::ResourceExhaustedError("the arena has no addresses left");
  }
  char* const place = base_ + used_;
  used_ += static_cast<uint64_t>(take);
  return place;
}

absl::Status Arena::Commit(char* place, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (mprotect(place, static_cast<size_t>(RoundUp(bytes)), PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a storage: ", strerror(errno)));
  }
  return absl::OkStatus();
}

void Arena::Decommit(char* place, int64_t bytes) {
  if (bytes == 0) return;
  // A new mapping in the place of the old one gives the pages back in one call.
  mmap(place, static_cast<size_t>(RoundUp(bytes)), PROT_NONE, kFlags | MAP_FIXED, -1, 0);
}

void Arena::Reset() {
  if (used_ > 0) mmap(base_, used_, PROT_NONE, kFlags | MAP_FIXED, -1, 0);
  used_ = 0;
}

}  // namespace tritonrl::device
