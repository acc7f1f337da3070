// One GPU of this machine for the life of the process: its context, stream and limits.
//
// The context holds the memory of one candidate after the other and nothing else that is worth
// reading. A kernel's wild access breaks it for good: then the process must be replaced.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_CONTEXT_H_
#define TRITONRL_EXEC_DEVICE_CUDA_CONTEXT_H_

#include <c10/core/Stream.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/device/cuda/driver.h"
#include "exec/device/session.h"

namespace tritonrl::device {

class CudaContext {
 public:
  // Unavailable, with the reason: there is no GPU that can be used.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Create(int index = 0);

  // Makes the GPU and its stream those of the calling thread: LibTorch's operators go there too.
  // Every thread that runs a session calls it once.
  absl::Status MakeCurrent();

  const Driver& driver() const { return driver_; }
  CUdevice device() const { return device_; }
  int index() const { return index_; }
  CUstream stream() const;
  const DeviceDescription& description() const { return description_; }
  int arch() const { return 10 * description_.capability_major + description_.capability_minor; }

  // Waits for all that was queued. DeadlineExceeded: `expired` said so, and the GPU still works.
  // OutOfRange "... illegal memory access ..." and others: the context is lost. After any error
  // poisoned() is true.
  absl::Status Wait(const std::function<bool()>& expired);

  // Whether the process must be replaced, as nothing works on the GPU any more.
  bool poisoned() const { return poisoned_; }
  void set_poisoned() { poisoned_ = true; }

 private:
  CudaContext(const Driver& driver, int index, c10::Stream stream)
      : driver_(driver), index_(index), stream_(stream) {}
  absl::Status Describe();

  const Driver& driver_;
  int index_;
  c10::Stream stream_;
  CUdevice device_ = 0;
  DeviceDescription description_;
  std::atomic<bool> poisoned_ = false;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_CONTEXT_H_
