#ifndef TRITONRL_MODEL_WEIGHTS_GRADIENT_RING_BUFFER_H_
#define TRITONRL_MODEL_WEIGHTS_GRADIENT_RING_BUFFER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

// Memory for gradients that are never there as a whole (ZeRO-2): the flat buffer has all its
// addresses, but far less memory behind them, which the addresses share in turn.
//
// The window of gradient_window.h on a GPU.

namespace tritonrl {

struct ParameterLayout;

// Which elements of a flat fp32 buffer share memory. The first `own` have memory of their own; each
// later one lies where the one `ring` elements further on does. With ring 0 all have their own.
struct GradientRingBuffer {
  int64_t own = 0;
  int64_t ring = 0;

  bool is_ring() const { return ring > 0; }
  int64_t bytes() const { return 4 * (own + ring); }
  // Writing elements from `offset` on, up to the length of the window's largest part, overwrites
  // only elements from the returned one on (and lower ones than `offset`).
  int64_t FirstOverwritten(int64_t offset) const { return (offset > own ? offset : own) + ring; }
};

// The window through which a backward can go that writes the layout's parts from the last to the
// first, while what it has written is taken away in buckets of `bucket_elements`: room for a bucket
// that is not complete yet beside three layers, one that is written while two are being taken away,
// or beside the largest part where that is more (an embedding then waits for the first layer to be
// taken away: some milliseconds, for which two layers' memory would be much). An embedding that is
// the head as well (`tied`) is written first and added to last: it gets memory of its own. Where
// all that would be no less than the whole buffer, the whole buffer. On a CPU in units of a page,
// on a GPU of 2 MiB.
GradientRingBuffer GradientRingBufferFor(const ParameterLayout& layout, bool tied,
                                         int64_t bucket_elements, at::Device device);

// [flat_size] fp32 zeros on `device` whose elements share memory as the window says; given back
// with the tensor's last reference. On a GPU kernels see what another one wrote through an address
// that shares its memory once that one has ended. Throws c10::Error, out of memory or because this
// machine's driver cannot map memory twice.
at::Tensor MapGradientRingBuffer(const GradientRingBuffer& ring_buffer, int64_t flat_size,
                                 at::Device device);

// [elements] fp32 zeros: the first `own` bytes have memory of their own, behind the rest lie `ring`
// bytes again and again; both in whole multiples of kMappingGranularity
// (model/cuda/address_range.h). Throws c10::Error.
at::Tensor MapCudaRingBuffer(int64_t own, int64_t ring, int64_t elements, at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_GRADIENT_RING_BUFFER_H_
