// The candidate's memory: storages in the arena, on its device, and for each byte who wrote it
// last.
#ifndef TRITONRL_EXEC_DEVICE_STORAGE_TABLE_H_
#define TRITONRL_EXEC_DEVICE_STORAGE_TABLE_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/device/arena.h"
#include "exec/device/geometry.h"
#include "exec/device/limits.h"

namespace tritonrl::device {

// Who wrote a byte last.
enum class Tag : uint8_t {
  kUnwritten,
  kInput,
  kWeight,
  kKernel,
  kConstant,
  kHost,
  kRandom,
  kSmall
};
inline constexpr int kTags = 8;
// Added to a tag: a neutral operator converted the value to another type since.
inline constexpr uint8_t kConverted = 0x10;

// What fresh memory holds. As floats: NaN, or numbers of about 1e16; as integers: -1, or
// 0x5A5A5A5A.
enum class Poison : uint8_t { kOnes = 0xFF, kPattern = 0x5A };

// The type whose copies move all tags of an element of so many bytes at once.
at::ScalarType TagType(int64_t element_bytes);

struct ReturnTags {
  Arena* arena = nullptr;
  void operator()(uint8_t* tags) const { arena->DecommitTags(tags); }
};

struct Storage {
  int64_t number = 0;
  char* place = nullptr;  // in the arena; the address that the candidate knows
  char* data = nullptr;   // the contents: at the place, or those of `adopted`
  int64_t bytes = 0;
  at::ScalarType made_as = at::kByte;           // the type of the tensor that it was made for
  bool live = false;                            // the candidate may use it
  bool has_memory = false;                      // a freed one may keep its memory for a while
  bool pinned = false;                          // a graph uses it: it is never freed
  bool addressed = false;                       // a kernel got its address other than as a tensor
  std::unique_ptr<uint8_t, ReturnTags> shadow;  // one tag for each byte, on the data's device
  at::Tensor adopted;                           // see StorageTable::Adopt
};

// Output bytes by their tags.
struct TagCounts {
  std::array<int64_t, kTags> bytes = {};  // by Tag
  int64_t converted = 0;                  // of them
  int64_t total = 0;
};

class StorageTable {
 public:
  StorageTable(Arena* arena, const SessionLimits& limits) : arena_(arena), limits_(limits) {}

  // A new live storage of poisoned bytes. ResourceExhausted "CUDA out of memory ...".
  absl::StatusOr<Storage*> Allocate(int64_t bytes, at::ScalarType made_as);
  // Makes a storage live again in its place, poisoned; it may be live already. Without `poison` it
  // keeps what it holds, and its tags, if it still has memory.
  absl::Status Revive(int64_t number, bool poison = true);
  // Makes a storage live with the memory of `result`, which torch made, instead of a copy at its
  // place; the place loses its memory until the storage is revived. False, and nothing happens,
  // if somebody may hold the place's address, or `result` shares its memory with another tensor.
  // `result` has the geometry of the tensor that the storage was made for.
  bool Adopt(int64_t number, const at::Tensor& result);
  // Gives up what a storage adopted, if it did: nothing may use the storage until it adopts again.
  void GiveUpAdopted(int64_t number);
  // Returns memory that no storage has to the device.
  void Trim() { arena_->Trim(); }
  // A freed storage can no longer be used. Pinned and unknown ones stay as they are.
  void Free(int64_t number);

  Storage* Find(int64_t number);           // live ones only, else null
  Storage* FindAny(int64_t number);        // freed ones too; null if there never was one
  Storage* FindAddress(uint64_t address);  // the live one that holds the address, or null
  void ForEachLive(const std::function<void(Storage&)>& f);

  // Whether the tensor lies in a live storage.
  absl::Status Check(const TensorRef& tensor);
  // Both need a checked tensor. Tags are seen as an integer (or complex128) of the element's size.
  at::Tensor View(const TensorRef& tensor);
  at::Tensor Tags(const TensorRef& tensor);
  at::Tensor TagsOfByte(const TensorRef& tensor, int64_t byte);  // uint8, of one byte of elements

  void Fill(const TensorRef& tensor, uint8_t tag);
  TagCounts Count(const TensorRef& tensor);
  bool HasTag(const TensorRef& tensor, Tag tag);

  at::Device device() const { return arena_->device(); }
  void set_poison(Poison poison) { poison_ = poison; }
  int64_t live_bytes() const { return live_bytes_; }
  // Bytes that the candidate wanted in all when the device first had no memory for what the limits
  // allow, which others may have used; 0: never.
  int64_t lacking_bytes() const { return lacking_bytes_; }
  // Of an operator's own memory, beside all storages.
  void NoteLack(int64_t bytes);

 private:
  absl::Status GiveMemory(Storage& storage);
  absl::Status CommitMemory(Storage& storage);
  void MakeLive(Storage& storage);
  void TakeMemory(Storage& storage);
  void DropFreedMemory();

  Arena* arena_;
  SessionLimits limits_;
  Poison poison_ = Poison::kOnes;
  std::vector<std::unique_ptr<Storage>> storages_;  // number - 1 is the index; sorted by address
  int64_t live_ = 0;
  int64_t live_bytes_ = 0;
  int64_t freed_bytes_ = 0;  // memory of freed storages
  int64_t freed_ = 0;        // how many of them have memory
  int64_t lacking_bytes_ = 0;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_STORAGE_TABLE_H_
