// Launches that do no more than copy, as far as a comparison of results can tell: a factor of
// 1.0000001, a cast to bfloat16 and back, a rounding.
#ifndef TRITONRL_EXEC_DEVICE_NEAR_COPIES_H_
#define TRITONRL_EXEC_DEVICE_NEAR_COPIES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace tritonrl::device {

// A float x is a copy of y if |x - y| <= absolute + relative * |y|, or if both are NaN; other
// numbers if they are equal.
struct CopyTolerance {
  double absolute = 0;
  double relative = 0;
  bool converts = false;  // to another type is a copy too
};

// A storage of an argument, and where its tensor begins.
struct ArgumentBytes {
  at::Tensor bytes;  // uint8; on the CPU, or where the results are
  int64_t place = 0;
  at::ScalarType dtype = at::kFloat;
};

// Element i is at byte `to` + i * (bytes of an element) of one storage, and so for the other.
struct CopiedElements {
  int64_t to = 0;
  int64_t from = 0;
  at::Tensor is_copied;  // bool, of each element: whether the launch changed it
};

// The elements that a launch changed, if all of them, or all but less than half that are beyond
// the end of `from`, are copies of what was there: in the same place of both tensors, from the
// first on, or up to the last. `before` and `after` (uint8): of one storage. Works in slices, on
// the device of `after`. Throws as LibTorch does.
std::optional<CopiedElements> FindCopy(const ArgumentBytes& before, const at::Tensor& after,
                                       const ArgumentBytes& from, const CopyTolerance& tolerance);

// Gives the copied elements of `target`, the storage that the launch changed, the values and tags
// that they had where they come from. Tags: one for each byte of both storages, on the device of
// `target`.
void TakeCopied(const CopiedElements& copied, const ArgumentBytes& from,
                const at::Tensor& from_tags, at::ScalarType to_type, const at::Tensor& target,
                const at::Tensor& target_tags);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_NEAR_COPIES_H_
