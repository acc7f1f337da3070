// Memory for gradients that never exist as a whole (ZeRO-2): the flat buffer has all addresses,
// but a ring of much less memory mapped to them repeatedly.

#ifndef TRITONRL_MODEL_WEIGHTS_GRADIENT_RING_BUFFER_H_
#define TRITONRL_MODEL_WEIGHTS_GRADIENT_RING_BUFFER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tritonrl {

struct ParameterLayout;

// Which elements of a flat fp32 buffer share memory. The first `own` have memory of their own;
// later elements that are `ring` apart share memory. With ring 0 all have their own.
struct GradientRingBuffer {
  int64_t own = 0;
  int64_t ring = 0;

  bool is_ring() const { return ring > 0; }
  int64_t bytes() const { return 4 * (own + ring); }
  // Writing elements from `offset` on, up to the length of the largest part, overwrites only
  // elements from the returned one on (and below `offset`).
  int64_t FirstOverwritten(int64_t offset) const { return (offset > own ? offset : own) + ring; }
};

// The ring buffer for a backward that writes the layout's parts from the last to the first while
// its gradients are reduced in buckets of `bucket_elements`. The ring has room for an incomplete
// bucket and three layers (one is written while two are reduced), or the largest part if that is
// more: an embedding then waits some milliseconds for the first layer's reduction instead of taking
// two layers' memory. A `tied` embedding is written first and added to last, so it has memory of
// its own. Returns the whole buffer if a ring would not be smaller. Units are pages on a CPU, 2 MiB
// on a GPU.
GradientRingBuffer GradientRingBufferFor(const ParameterLayout& layout, bool tied,
                                         int64_t bucket_elements, at::Device device);

// [flat_size] fp32 zeros on `device` whose elements share memory as `ring_buffer` says; freed with
// the tensor's last reference. On a GPU a kernel sees writes through another address of the same
// memory once the writing kernel has ended. Throws c10::Error if memory is short or the driver
// cannot map memory twice.
at::Tensor MapGradientRingBuffer(const GradientRingBuffer& ring_buffer, int64_t flat_size,
                                 at::Device device);

// [elements] fp32 zeros: the first `own` bytes have memory of their own, the same `ring` bytes are
// mapped repeatedly to the rest; both are multiples of kMappingGranularity
// (model/cuda/common/virtual_memory.h). Throws c10::Error.
at::Tensor MapCudaRingBuffer(int64_t own, int64_t ring, int64_t elements, at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_GRADIENT_RING_BUFFER_H_
