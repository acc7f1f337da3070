// A fixed range of addresses in which a candidate's storages lie.
//
// Placement is the next free place, never a place that was used before, so that the same requests
// get the same addresses in another process, and an old pointer never meets newer data.
#ifndef TRITONRL_EXEC_DEVICE_ARENA_H_
#define TRITONRL_EXEC_DEVICE_ARENA_H_

#include <c10/core/Device.h>

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
  // Of an arena on the CPU.
  static constexpr int64_t kBlockBytes = 64 << 10;
  static constexpr int64_t kGuardBytes = 64 << 10;  // at least, behind each storage

  // An arena on the CPU. FailedPrecondition: something else has memory there.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(uintptr_t base = kArenaBase,
                                                       int64_t bytes = kArenaBytes);
  virtual ~Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Where the memory lies, and who may read and write it.
  virtual c10::Device device() const = 0;

  // The place of a storage, without memory. ResourceExhausted: no addresses are left.
  absl::StatusOr<char*> Reserve(int64_t bytes);
  // Gives a place its memory. ResourceExhausted: there is no more.
  virtual absl::Status Commit(char* place, int64_t bytes) = 0;
  // Takes it away, and that of the tags: an access faults.
  virtual void Decommit(char* place, int64_t bytes) = 0;
  // Memory of zeros on the same device for the tags of a place with memory: one byte for each byte.
  virtual absl::StatusOr<uint8_t*> CommitTags(char* place, int64_t bytes) = 0;
  // To be called before the place's memory is taken away.
  virtual void DecommitTags(uint8_t* tags) = 0;
  // Gives memory that no place has back to the device.
  virtual void Trim() {}
  // Forgets all places and their memory; tags must be gone.
  virtual void Reset() = 0;
  // Whether nobody will look at tags: then large places may share the memory for them. Until Reset.
  virtual void set_ignores_tags(bool) {}

  bool Contains(uint64_t address) const {
    return address >= reinterpret_cast<uint64_t>(base_) &&
           address - reinterpret_cast<uint64_t>(base_) < used_;
  }

 protected:
  // A place takes whole blocks, and `guard` bytes behind them.
  Arena(char* base, int64_t bytes, int64_t block, int64_t guard)
      : base_(base), bytes_(bytes), block_(block), guard_(guard) {}

  char* base() const { return base_; }
  int64_t bytes() const { return bytes_; }
  uint64_t used() const { return used_; }
  void ForgetPlaces() { used_ = 0; }
  int64_t InBlocks(int64_t bytes) const { return (bytes + block_ - 1) / block_ * block_; }

 private:
  char* base_;
  int64_t bytes_;
  int64_t block_;
  int64_t guard_;
  uint64_t used_ = 0;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_ARENA_H_
