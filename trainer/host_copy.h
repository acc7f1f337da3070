// A copy of a tensor in host memory that is kept for the next copy: pinned where the source lies on
// a GPU, so that the copy runs at the bus's speed.
#ifndef TRITONRL_TRAINER_HOST_COPY_H_
#define TRITONRL_TRAINER_HOST_COPY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tritonrl {

class HostCopy {
 public:
  // A power of two: pinned memory is given out in these, so that one large piece could waste half.
  static constexpr int64_t kPieceBytes = int64_t{256} << 20;

  explicit HostCopy(int64_t piece_bytes = kPieceBytes) : piece_bytes_(piece_bytes) {}

  // Copies a contiguous tensor; the copy is complete on return. Memory is allocated only when type,
  // size or device differ from the last time. Out of memory throws c10::Error or std::bad_alloc.
  void Take(const at::Tensor& source);

  // The last copy's elements in order, each piece [n] of the source's type.
  const std::vector<at::Tensor>& pieces() const { return pieces_; }
  // Writes them into `target`, contiguous on the CPU, of the source's type and size.
  void CopyTo(const at::Tensor& target) const;

 private:
  bool Fits(const at::Tensor& source) const;

  int64_t piece_bytes_;
  int64_t elements_ = 0;
  bool pinned_ = false;
  std::vector<at::Tensor> pieces_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_HOST_COPY_H_
