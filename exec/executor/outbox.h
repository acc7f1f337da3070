// The executor's side of the memory in which its answers' tensors lie.
#ifndef TRITONRL_EXEC_EXECUTOR_OUTBOX_H_
#define TRITONRL_EXEC_EXECUTOR_OUTBOX_H_

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "exec/device/window.h"
#include "exec/executor/value_message.h"

namespace tritonrl::executor {

// Gives LibTorch's larger CPU tensors their memory, so that a result is there already when it is
// to be handed over, in pages that were used before. Thread-safe.
class Outbox : public c10::Allocator {
 public:
  static constexpr size_t kLeastBytes = 64 << 10;  // of a tensor that is placed here

  // Maps all of a memory file. Errors of mmap.
  static absl::StatusOr<std::unique_ptr<Outbox>> Create(int fd);
  ~Outbox() override;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // From here, or from the heap if there is no room.
  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }
  void copy_data(void* to, const void* from, size_t bytes) const override;
  // A place for exactly these bytes; null if there is none.
  c10::DataPtr AllocateHere(size_t bytes);

  // Whether the bytes lie here; then their offset.
  bool Contains(const void* data, size_t bytes, uint64_t* offset) const;
  // Gives Linux the free memory back, if there is much of it.
  void Trim();

 private:
  Outbox(int fd, char* base, size_t bytes);
  void Free(size_t offset);
  static void Delete(void* data);

  const int fd_;
  char* const base_;
  const size_t bytes_;
  absl::Mutex mutex_;
  std::map<size_t, size_t> free_ ABSL_GUARDED_BY(mutex_);  // offset -> bytes; never adjacent
  std::map<size_t, size_t> used_ ABSL_GUARDED_BY(mutex_);
  size_t touched_ ABSL_GUARDED_BY(mutex_) = 0;  // memory below this offset may have pages
};

// Places the tensors of one answer. Copies of those that lie neither in the outbox nor in the
// window for outputs, which may be null, live as long as this object.
class OutboxPlacer : public ContentsPlacer {
 public:
  OutboxPlacer(Outbox* outbox, const device::Window* window) : outbox_(*outbox), window_(window) {}
  absl::StatusOr<Contents> Place(const at::Tensor& tensor, size_t bytes) override;

 private:
  Outbox& outbox_;
  const device::Window* window_;
  std::vector<c10::DataPtr> copies_;
};

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_OUTBOX_H_
