#include "exec/device/undo_log.h"

#include "base/status.h"
#include "exec/device/bytes.h"

namespace tritonrl::device {

void UndoLog::Keep(const Storage& storage, const StorageTable& memory) {
  const auto [place, is_new] = kept_.try_emplace(storage.number);
  if (!is_new) return;
  const at::Device device = memory.device();
  place->second.bytes = BytesAt(device, storage.data, storage.bytes).clone();
  place->second.tags = BytesAt(device, storage.shadow.get(), storage.bytes).clone();
}

absl::Status UndoLog::Restore(StorageTable& memory, bool revive) const {
  const at::Device device = memory.device();
  for (const auto& [number, contents] : kept_) {
    Storage* storage = memory.Find(number);
    if (storage == nullptr && revive) {
      RETURN_IF_ERROR(memory.Revive(number));
      storage = memory.Find(number);
    }
    if (storage == nullptr) continue;
    BytesAt(device, storage->data, storage->bytes).copy_(contents.bytes);
    BytesAt(device, storage->shadow.get(), storage->bytes).copy_(contents.tags);
  }
  return absl::OkStatus();
}

}  // namespace tritonrl::device
