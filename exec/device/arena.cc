#include "exec/device/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tritonrl::device {
namespace {

constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

class HostArena : public Arena {
 public:
  HostArena(char* base, int64_t bytes) : Arena(base, bytes, kBlockBytes, kGuardBytes) {}
  ~HostArena() override { munmap(base(), static_cast<size_t>(bytes())); }

  c10::Device device() const override { return c10::kCPU; }

  absl::Status Commit(char* place, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    if (mprotect(place, static_cast<size_t>(InBlocks(bytes)), PROT_READ | PROT_WRITE) != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for a storage: ", strerror(errno)));
    }
    return absl::OkStatus();
  }

  void Decommit(char* place, int64_t bytes) override {
    if (bytes == 0) return;
    // A new mapping in the place of the old one gives the pages back in one call.
    mmap(place, static_cast<size_t>(InBlocks(bytes)), PROT_NONE, kFlags | MAP_FIXED, -1, 0);
  }

  absl::StatusOr<uint8_t*> CommitTags(char*, int64_t bytes) override {
    void* const tags = calloc(static_cast<size_t>(std::max<int64_t>(bytes, 1)), 1);
    if (tags == nullptr) return absl::ResourceExhaustedError("no memory for a storage");
    return static_cast<uint8_t*>(tags);
  }
  void DecommitTags(uint8_t* tags) override { free(tags); }

  void Reset() override {
    if (used() > 0) mmap(base(), used(), PROT_NONE, kFlags | MAP_FIXED, -1, 0);
    ForgetPlaces();
  }
};

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
  return std::make_unique<HostArena>(static_cast<char*>(got), bytes);
}

absl::StatusOr<char*> Arena::Reserve(int64_t bytes) {
  if (bytes < 0 || bytes > bytes_) return absl::ResourceExhaustedError("a storage is too large");
  const int64_t take = std::max(InBlocks(bytes), block_) + guard_;
  if (take > bytes_ - static_cast<int64_t>(used_)) {
    return absl::ResourceExhaustedError("the arena has no addresses left");
  }
  char* const place = base_ + used_;
  used_ += static_cast<uint64_t>(take);
  return place;
}

}  // namespace tritonrl::device
