// Launches that do no more than copy, as far as a comparison of results can tell: a factor of
// 1.0000001, a cast to bfloat16 and back, a rounding.
#ifndef TRITONRL_EXEC_DEVICE_NEAR_COPIES_H_
#define TRITONRL_EXEC_DEVICE_NEAR_COPIES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tritonrl::device {

// A float x is a copy of y if |x - y| <= absolute + relative * |y|, or if both are NaN; other
// numbers if they are equal.
struct CopyTolerance {
  double absolute = 0;
  double relative = 0;
  bool converts = false;  // to another type is a copy too
};

// A storage of an argument, on the host, and where its tensor begins.
struct ArgumentBytes {
  const uint8_t* data = nullptr;
  int64_t bytes = 0;
  int64_t place = 0;
  at::ScalarType dtype = at::kFloat;
};

// Element i is at byte `to` + i * (bytes of an element) of one storage, and so for the other.
struct CopiedElements {
  int64_t to = 0;
  int64_t from = 0;
  std::vector<uint8_t> is_copied;  // of each element: 1 if the launch changed it
  at::Tensor converted;            // those of `from`, in the type of `to`
};

// The elements that a launch changed, if all of them, or all but less than half that are beyond
// the end of `from`, are copies of what was there: in the same place of both tensors, from the
// first on, or up to the last. `before` and `after`: of one storage. Throws as LibTorch does.
std::optional<CopiedElements> FindCopy(const ArgumentBytes& before, const uint8_t* after,
                                       const ArgumentBytes& from, const CopyTolerance& tolerance);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_NEAR_COPIES_H_
