// Memory in which requests' tensors lie, from the side that writes it.
#ifndef TRITONRL_EXEC_EXECUTOR_INBOX_H_
#define TRITONRL_EXEC_EXECUTOR_INBOX_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "exec/device/window.h"
#include "exec/executor/value_message.h"
#include "exec/workers/shared_memory.h"

namespace tritonrl::executor {

class Inbox {
 public:
  static constexpr uint64_t kBytes = uint64_t{1} << 37;  // of addresses; memory comes as it is used

  static absl::StatusOr<std::unique_ptr<Inbox>> Create();
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // A descriptor through which the memory can only be read; stays this object's.
  int reader() const { return reader_; }

  // Copies bytes behind those that are there; returns their offset. ResourceExhausted: it is full.
  absl::StatusOr<uint64_t> Append(const void* data, size_t bytes);
  uint64_t end() const { return end_; }
  // Forgets what lies behind an offset. From 0 on, memory beyond a bound goes back to Linux.
  void Truncate(uint64_t end);

 private:
  Inbox(SharedMemory memory, int reader, char* base)
      : memory_(std::move(memory)), reader_(reader), base_(base) {}

  SharedMemory memory_;
  const int reader_;
  char* const base_;
  uint64_t end_ = 0;
  uint64_t touched_ = 0;
};

// Places tensors of a request: where they lie, if that is in `shared` or in the window for inputs,
// else in the inbox.
class InboxPlacer : public ContentsPlacer {
 public:
  // `shared` and `window` may be null.
  InboxPlacer(Inbox* inbox, const SharedMemory* shared, const device::Window* window)
      : inbox_(*inbox), shared_(shared), window_(window) {}
  absl::StatusOr<Contents> Place(const at::Tensor& tensor, size_t bytes) override;

 private:
  Inbox& inbox_;
  const SharedMemory* shared_;
  const device::Window* window_;
};

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_INBOX_H_
