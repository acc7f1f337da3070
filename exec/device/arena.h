// A fixed range of addresses in which a candidate's storages lie.
//
// Placement is the next free place, never a place that was used before, so that the same requests
// get the same addresses in another process, and an old pointer never meets newer data.
#ifndef TRITONRL_EXEC_DEVICE_ARENA_H_
#define TRITONRL_EXEC_DEVICE_ARENA_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl::device {

// Where no sanitizer has its own memory.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr uintptr_t kArenaBase = 0x200000000000;
#elif defined(__SANITIZE_THREAD__)
inline constexpr uintptr_t kArenaBase = 0;  // wherever Linux puts it
#else
inline constexpr uintptr_t kArenaBase = 0x600000000000;
#endif
inline constexpr int64_t kArenaBytes = int64_t{1} << 40;

class Arena {
 public:
  static constexpr int64_t kBlockBytes = 64 << 10;
  static constexpr int64_t kGuardBytes = 64 << 10;  // at least, behind each storage

  // FailedPrecondition: something else has memory there.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(uintptr_t base = kArenaBase,
                                                       int64_t bytes = kArenaBytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The place of a storage, without memory. ResourceExhausted: no addresses are left.
  absl::StatusOr<char*> Reserve(int64_t bytes);
  // Gives a place its memory. ResourceExhausted: Linux has no more.
  absl::Status Commit(char* place, int64_t bytes);
  // Takes it away: an access faults.
  void Decommit(char* place, int64_t bytes);
  // Forgets all places and their memory.
  void Reset();

  bool Contains(uint64_t address) const {
    return address >= reinterpret_cast<uint64_t>(base_) &&
           address - reinterpret_cast<uint64_t>(base_) < used_;
  }

 private:
  Arena(char* base, int64_t bytes) : base_(base), bytes_(bytes) {}

  char* base_;
  int64_t bytes_;
  uint64_t used_ = 0;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_ARENA_H_
