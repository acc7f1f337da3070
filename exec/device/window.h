// Windows: memory that an executor shares with the process that holds a task's inputs and expected
// outputs, for calls whose tensors are too large to pass through messages.
//
// An executor maps a window only while it copies, so that no kernel of a candidate finds it.
#ifndef TRITONRL_EXEC_DEVICE_WINDOW_H_
#define TRITONRL_EXEC_DEVICE_WINDOW_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/device/value.h"

namespace tritonrl::device {

// Addresses of a fixed place and size, which have memory while the window is mapped.
class Window {
 public:
  virtual ~Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  char* base() const { return base_; }
  int64_t bytes() const { return bytes_; }
  bool Contains(const void* data) const {
    return data >= base_ && data < static_cast<const void*>(base_ + bytes_);
  }

  virtual at::Device device() const { return at::kCPU; }
  // Of the memory; -1: it is not to be passed on.
  virtual int fd() const { return -1; }

 protected:
  friend class MappedWindow;
  Window(char* base, int64_t bytes) : base_(base), bytes_(bytes) {}
  // Both wait for what the device still does there.
  virtual absl::Status Map() = 0;
  virtual void Unmap() = 0;

 private:
  char* const base_;
  const int64_t bytes_;
  int mapped_ = 0;  // scopes
};

// Memory of the CPU by its descriptor, which stays the caller's. InvalidArgument: it is smaller.
absl::StatusOr<std::unique_ptr<Window>> OpenHostWindow(int fd, int64_t bytes);

// A window of others, for who only says what lies where: it cannot be mapped here. Takes the
// descriptor over.
absl::StatusOr<std::unique_ptr<Window>> ReserveWindow(int fd, int64_t bytes);

// Keeps a window mapped as long as it lives. `window` may be null.
class MappedWindow {
 public:
  explicit MappedWindow(Window* window);
  ~MappedWindow();
  MappedWindow(const MappedWindow&) = delete;
  MappedWindow& operator=(const MappedWindow&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  Window* window_;
  absl::Status status_;
};

// How the tensors of live calls and replays pass between two processes.
struct Exchange {
  std::unique_ptr<Window> inputs;   // the tensors of CallInputs and ReplayOptions may lie there
  std::unique_ptr<Window> outputs;  // outputs are written there, dense, one behind the other
  // Has the inputs of a live call, counted from 0, lie in their window.
  std::function<absl::Status(size_t call)> provide;
  // Tells that the output of a live call lies in its window, until the next call ends. `on_device`:
  // all tensors of the first one were on the device.
  std::function<absl::Status(size_t call, const Value& output, bool on_device)> take;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_WINDOW_H_
