// Contents of storages, kept to be put back.
#ifndef TRITONRL_EXEC_DEVICE_UNDO_LOG_H_
#define TRITONRL_EXEC_DEVICE_UNDO_LOG_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "exec/device/storage_table.h"

namespace tritonrl::device {

class UndoLog {
 public:
  // Keeps the storage's bytes and tags, unless the log has them already.
  void Keep(const Storage& storage, const StorageTable& memory);
  // Writes them back. Storages that were freed since become live again if `revive`.
  absl::Status Restore(StorageTable& memory, bool revive) const;
  bool Has(int64_t storage) const { return kept_.count(storage) > 0; }

 private:
  struct Contents {
    at::Tensor bytes;  // on the device
    at::Tensor tags;
  };
  std::map<int64_t, Contents> kept_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_UNDO_LOG_H_
