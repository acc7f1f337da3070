#include "exec/device/undo_log.h"

#include <algorithm>

#include "base/status.h"

namespace tritonrl::device {

void UndoLog::Keep(const Storage& storage) {
  const auto [place, is_new] = kept_.try_emplace(storage.number);
  if (!is_new) return;
  const uint8_t* const tags = storage.shadow.get();
  place->second.bytes.assign(storage.data, storage.data + storage.bytes);
  place->second.tags.assign(tags, tags + storage.bytes);
}

absl::Status UndoLog::Restore(StorageTable& memory, bool revive) const {
  for (const auto& [number, contents] : kept_) {
    Storage* storage = memory.Find(number);
    if (storage == nullptr && revive) {
      RETURN_IF_ERROR(memory.Revive(number));
      storage = memory.Find(number);
    }
    if (storage == nullptr) continue;
    std::copy(contents.bytes.begin(), contents.bytes.end(), storage->data);
    std::copy(contents.tags.begin(), contents.tags.end(), storage->shadow.get());
  }
  return absl::OkStatus();
}

}  // namespace tritonrl::device
