// Where a tensor's elements lie in a storage. Everything is checked here, before LibTorch sees it.
#ifndef TRITONRL_EXEC_DEVICE_GEOMETRY_H_
#define TRITONRL_EXEC_DEVICE_GEOMETRY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl::device {

// Names without "torch.". Nullopt, "": a type that the executor does not hold.
std::optional<at::ScalarType> ParseScalarType(absl::string_view name);
absl::string_view NameOf(at::ScalarType type);
int64_t BytesOf(at::ScalarType type);  // of one element

// A tensor on the device, by the number of its storage.
struct TensorRef {
  int64_t storage = 0;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  std::vector<int64_t> stride;  // elements, not negative
  int64_t offset = 0;           // elements
  bool negative = false;        // torch's lazy bits
  bool conjugate = false;

  int64_t elements() const;  // valid once SpanOf accepted the shape
};

// Elements from the storage's begin to the end of the last element, 0 for an empty tensor.
// InvalidArgument: a negative number, or elements or bytes beyond 2^62.
absl::StatusOr<int64_t> SpanOf(const TensorRef& tensor);

// Whether strides alone show that no two elements share their place. May be false for others.
bool HasDistinctElements(const TensorRef& tensor);

// A tensor of this geometry over memory of the device that the caller checked to be large enough.
at::Tensor ViewOf(char* storage, const TensorRef& tensor, at::ScalarType as,
                  at::Device device = at::kCPU);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_GEOMETRY_H_
