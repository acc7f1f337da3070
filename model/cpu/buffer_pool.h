// Keeps the memory of freed CPU tensors for reuse: new memory from the system costs a page fault
// per 4 KiB, about a tenth of a training step.

#ifndef TRITONRL_MODEL_CPU_BUFFER_POOL_H_
#define TRITONRL_MODEL_CPU_BUFFER_POOL_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace tritonrl {

// A thread-safe pool. Tensors share its ownership, so they may outlive the caller's reference.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // The pool keeps at most `max_idle_bytes` of freed memory.
  explicit BufferPool(size_t max_idle_bytes = size_t{1} << 30) : max_idle_bytes_(max_idle_bytes) {}
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Returns an uninitialized contiguous CPU tensor. The pool gets the memory back when the last
  // reference to the tensor is destroyed, on any thread. Throws std::bad_alloc.
  at::Tensor Empty(at::IntArrayRef shape, at::ScalarType dtype);

  size_t idle_bytes() const;

  // Memory of the live tensors, and its maximum since the last ResetPeak. Sizes are rounded up by
  // less than an eighth.
  size_t taken_bytes() const;
  size_t peak_bytes() const;
  void ResetPeak();

 private:
  void* Take(size_t bytes);
  void GiveBack(void* data, size_t bytes);

  const size_t max_idle_bytes_;
  mutable std::mutex mutex_;
  std::map<size_t, std::vector<void*>> idle_;  // by size
  size_t idle_bytes_ = 0;
  size_t taken_bytes_ = 0;
  size_t peak_bytes_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CPU_BUFFER_POOL_H_
