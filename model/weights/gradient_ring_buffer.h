// Memory for gradients that never exist all at once (ZeRO-2): the flat buffer has an address for
// every element, but a much smaller ring of memory is mapped repeatedly to those addresses.

#ifndef TRITONRL_MODEL_WEIGHTS_GRADIENT_RING_BUFFER_H_
#define TRITONRL_MODEL_WEIGHTS_GRADIENT_RING_BUFFER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tritonrl {

struct ParameterLayout;

// Which elements of a flat fp32 buffer share memory. Each of the first `own` elements has its own
// memory; later elements that are `ring` apart share memory. With ring 0 every element has its own
// memory.
struct GradientRingBuffer {
  int64_t own = 0;
  int64_t ring = 0;

  bool is_ring() const { return ring > 0; }
  int64_t bytes() const { return 4 * (own + ring); }
  // A write of at most the largest part's length at element `offset` overwrites, outside the
  // written range, only elements below `offset` and elements from the returned index on.
  int64_t FirstOverwritten(int64_t offset) const { return (offset > own ? offset : own) + ring; }
};

// Chooses the ring buffer for a backward pass that writes the layout's parts from the last to the
// first while its gradients are reduced in buckets of `bucket_elements`. The ring has room for an
// incomplete bucket plus three layers (the backward writes one while two are reduced), or plus the
// largest part if that is larger: an embedding then waits some milliseconds for the first layer's
// reduction instead of taking two layers' memory. The backward writes a `tied` embedding first and
// adds to it last, so the embedding has its own memory. Returns the whole buffer if a ring would
// not be smaller. Sizes are rounded up to pages on a CPU and to 2 MiB on a GPU.
GradientRingBuffer GradientRingBufferFor(const ParameterLayout& layout, bool tied,
                                         int64_t bucket_elements, at::Device device);

// Returns [flat_size] fp32 zeros on `device` whose elements share memory as `ring_buffer` defines.
// The memory is freed with the tensor's last reference. On a GPU, a kernel sees writes made through
// another address of the same memory once the writing kernel has ended. Throws c10::Error if memory
// is short or the driver cannot map memory twice.
at::Tensor MapGradientRingBuffer(const GradientRingBuffer& ring_buffer, int64_t flat_size,
                                 at::Device device);

// Returns [elements] fp32 zeros on a GPU. The first `own` bytes have their own memory; one block of
// `ring` bytes is mapped repeatedly to the rest. Both sizes are multiples of kMappingGranularity
// (model/cuda/common/virtual_memory.h). Throws c10::Error.
at::Tensor MapCudaRingBuffer(int64_t own, int64_t ring, int64_t elements, at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_GRADIENT_RING_BUFFER_H_
