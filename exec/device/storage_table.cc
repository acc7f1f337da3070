#include "exec/device/storage_table.h"

#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/json.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kMaxFreed = 2'048;
constexpr int64_t kMaxFreedBytes = int64_t{2} << 30;  // others may want the memory

// Whether the elements are all bytes of one range.
bool IsDense(const TensorRef& tensor) {
  const auto span = SpanOf(tensor);
  return span.ok() && HasDistinctElements(tensor) && *span - tensor.offset == tensor.elements();
}

}  // namespace

at::ScalarType TagType(int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return at::kByte;
    case 2:
      return at::kShort;
    case 4:
      return at::kInt;
    case 8:
      return at::kLong;
    default:
      return at::kComplexDouble;
  }
}

absl::Status StorageTable::CommitMemory(Storage& storage) {
  RETURN_IF_ERROR(arena_->Commit(storage.place, storage.bytes));
  const absl::StatusOr<uint8_t*> shadow = arena_->CommitTags(storage.place, storage.bytes);
  if (!shadow.ok()) {
    arena_->Decommit(storage.place, storage.bytes);
    return shadow.status();
  }
  storage.shadow = {*shadow, ReturnTags{arena_}};
  storage.has_memory = true;
  return absl::OkStatus();
}

void StorageTable::NoteLack(int64_t bytes) {
  if (lacking_bytes_ == 0) lacking_bytes_ = std::max<int64_t>(1, live_bytes_ + bytes);
}

absl::Status StorageTable::GiveMemory(Storage& storage) {
  if (!storage.has_memory) {
    const absl::Status committed = CommitMemory(storage);
    if (absl::IsResourceExhausted(committed)) NoteLack(storage.live ? 0 : storage.bytes);
    RETURN_IF_ERROR(committed);
    storage.adopted = at::Tensor();
    storage.data = storage.place;
  } else {
    FillBytes(device(), storage.shadow.get(), 0, storage.bytes);
  }
  FillBytes(device(), storage.data, static_cast<uint8_t>(poison_), storage.bytes);
  return absl::OkStatus();
}

void StorageTable::TakeMemory(Storage& storage) {
  storage.shadow.reset();
  arena_->Decommit(storage.place, storage.bytes);
  storage.has_memory = false;
}

bool StorageTable::Adopt(int64_t number, const at::Tensor& result) {
  Storage* const storage = FindAny(number);
  const auto address = reinterpret_cast<uint64_t>(result.const_data_ptr());
  if (storage == nullptr || storage->addressed || storage->pinned || storage->bytes == 0 ||
      result.is_conj() || result.is_neg() || result.storage().use_count() != 1 ||
      arena_->Contains(address)) {
    return false;
  }
  MakeLive(*storage);
  if (storage->has_memory) TakeMemory(*storage);
  storage->adopted = result;
  storage->data = static_cast<char*>(result.mutable_data_ptr());
  return true;
}

void StorageTable::GiveUpAdopted(int64_t number) {
  Storage* const storage = FindAny(number);
  if (storage == nullptr || !storage->adopted.defined()) return;
  storage->adopted = at::Tensor();
  storage->data = storage->place;
}

void StorageTable::DropFreedMemory() {
  for (const auto& storage : storages_) {
    if (storage->live || !storage->has_memory) continue;
    TakeMemory(*storage);
  }
  freed_bytes_ = 0;
  freed_ = 0;
}

absl::StatusOr<Storage*> StorageTable::Allocate(int64_t bytes, at::ScalarType made_as) {
  if (bytes < 0 || bytes > limits_.max_memory_bytes - live_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("CUDA out of memory. Tried to allocate ",
                                                     bytes, " bytes; ", live_bytes_, " of ",
                                                     limits_.max_memory_bytes, " are in use."));
  }
  if (live_ >= limits_.max_live_storages || storages_.size() >= limits_.max_storages) {
    return absl::ResourceExhaustedError("CUDA out of memory: too many tensors.");
  }
  if (bytes > limits_.max_memory_bytes - live_bytes_ - freed_bytes_) DropFreedMemory();
  auto storage = std::make_unique<Storage>();
  ASSIGN_OR_RETURN(storage->place, arena_->Reserve(bytes));
  storage->data = storage->place;
  storage->number = static_cast<int64_t>(storages_.size()) + 1;
  storage->bytes = bytes;
  storage->made_as = made_as;
  RETURN_IF_ERROR(GiveMemory(*storage));
  storage->live = true;
  ++live_;
  live_bytes_ += bytes;
  storages_.push_back(std::move(storage));
  return storages_.back().get();
}

void StorageTable::MakeLive(Storage& storage) {
  if (storage.live) return;
  if (storage.has_memory) {
    freed_bytes_ -= storage.bytes;
    --freed_;
  }
  if (storage.bytes > limits_.max_memory_bytes - live_bytes_ - freed_bytes_) DropFreedMemory();
  ++live_;
  live_bytes_ += storage.bytes;
  storage.live = true;
}

absl::Status StorageTable::Revive(int64_t number, bool poison) {
  Storage* const storage = FindAny(number);
  if (storage == nullptr) return absl::InternalError("a storage is missing");
  MakeLive(*storage);
  return poison || !storage->has_memory ? GiveMemory(*storage) : absl::OkStatus();
}

void StorageTable::Free(int64_t number) {
  Storage* const storage = Find(number);
  if (storage == nullptr || storage->pinned) return;
  GiveUpAdopted(number);
  storage->live = false;
  --live_;
  live_bytes_ -= storage->bytes;
  if (!storage->has_memory) return;
  freed_bytes_ += storage->bytes;
  // Linux limits mappings as well as bytes.
  if (++freed_ >= kMaxFreed || freed_bytes_ > kMaxFreedBytes) DropFreedMemory();
}

Storage* StorageTable::FindAny(int64_t number) {
  if (number < 1 || number > static_cast<int64_t>(storages_.size())) return nullptr;
  return storages_[number - 1].get();
}

Storage* StorageTable::Find(int64_t number) {
  Storage* const storage = FindAny(number);
  return storage != nullptr && storage->live ? storage : nullptr;
}

Storage* StorageTable::FindAddress(uint64_t address) {
  const auto begin = [](const std::unique_ptr<Storage>& storage) {
    return reinterpret_cast<uint64_t>(storage->place);
  };
  auto after = std::upper_bound(
      storages_.begin(), storages_.end(), address,
      [&](uint64_t wanted, const auto& storage) { return wanted < begin(storage); });
  if (after == storages_.begin()) return nullptr;
  Storage* const storage = std::prev(after)->get();
  const uint64_t offset = address - reinterpret_cast<uint64_t>(storage->place);
  return storage->live && offset < static_cast<uint64_t>(storage->bytes) ? storage : nullptr;
}

void StorageTable::ForEachLive(const std::function<void(Storage&)>& f) {
  for (const auto& storage : storages_) {
    if (storage->live) f(*storage);
  }
}

absl::Status StorageTable::Check(const TensorRef& tensor) {
  const Storage* const storage = Find(tensor.storage);
  if (storage == nullptr) return Hostile("a tensor of a storage that does not exist");
  ASSIGN_OR_RETURN(const int64_t span, SpanOf(tensor));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(span, BytesOf(tensor.dtype), &bytes) || bytes > storage->bytes) {
    return Hostile("a tensor outside of its storage");
  }
  // An expanded tensor may have more elements than memory, and work is by element.
  if (tensor.elements() > limits_.max_memory_bytes) return Hostile("a tensor that is too large");
  return absl::OkStatus();
}

at::Tensor StorageTable::View(const TensorRef& tensor) {
  at::Tensor view = ViewOf(Find(tensor.storage)->data, tensor, tensor.dtype, device());
  if (tensor.conjugate) view = at::_conj(view);
  if (tensor.negative) view = at::_neg_view(view);
  return view;
}

at::Tensor StorageTable::Tags(const TensorRef& tensor) {
  char* const shadow = reinterpret_cast<char*>(Find(tensor.storage)->shadow.get());
  return ViewOf(shadow, tensor, TagType(BytesOf(tensor.dtype)), device());
}

at::Tensor StorageTable::TagsOfByte(const TensorRef& tensor, int64_t byte) {
  const int64_t size = BytesOf(tensor.dtype);
  std::vector<int64_t> stride = tensor.stride;
  for (int64_t& step : stride) step *= size;
  uint8_t* const shadow = Find(tensor.storage)->shadow.get();
  return at::for_blob(shadow + tensor.offset * size + byte, tensor.shape)
      .strides(stride)
      .options(at::TensorOptions().dtype(at::kByte).device(device()))
      .target_device(device())
      .make_tensor();
}

void StorageTable::Fill(const TensorRef& tensor, uint8_t tag) {
  if (tensor.elements() == 0) return;
  if (IsDense(tensor)) {
    const int64_t size = BytesOf(tensor.dtype);
    uint8_t* const tags = Find(tensor.storage)->shadow.get() + tensor.offset * size;
    FillBytes(device(), tags, tag, tensor.elements() * size);
    return;
  }
  for (int64_t byte = 0; byte < BytesOf(tensor.dtype); ++byte) TagsOfByte(tensor, byte).fill_(tag);
}

TagCounts StorageTable::Count(const TensorRef& tensor) {
  std::array<int64_t, 256> histogram = {};
  const auto add = [&](void* tags, int64_t count) {
    const std::array<int64_t, 256> more = CountBytes(device(), tags, count);
    for (size_t tag = 0; tag < more.size(); ++tag) histogram[tag] += more[tag];
  };
  const int64_t size = BytesOf(tensor.dtype);
  if (tensor.elements() > 0 && IsDense(tensor)) {
    add(Find(tensor.storage)->shadow.get() + tensor.offset * size, tensor.elements() * size);
  } else if (tensor.elements() > 0) {
    for (int64_t byte = 0; byte < size; ++byte) {
      const at::Tensor tags = TagsOfByte(tensor, byte).contiguous();
      add(tags.data_ptr(), tags.numel());
    }
  }
  TagCounts counts;
  for (int tag = 0; tag < 256; ++tag) {
    counts.bytes[tag % kTags] += histogram[tag];
    if ((tag & kConverted) != 0) counts.converted += histogram[tag];
    counts.total += histogram[tag];
  }
  return counts;
}

bool StorageTable::HasTag(const TensorRef& tensor, Tag tag) {
  return Count(tensor).bytes[static_cast<int>(tag)] > 0;
}

}  // namespace tritonrl::device
