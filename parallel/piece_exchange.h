// The two operations of which sums and gathers of buckets (bucket_exchange.h) are made, on pieces
// of one size.
#ifndef TRITONRL_PARALLEL_PIECE_EXCHANGE_H_
#define TRITONRL_PARALLEL_PIECE_EXCHANGE_H_

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"

namespace tritonrl {

// Used by one thread; all ranks begin the same operations in the same order. Tensors are contiguous
// and flat. Memory of the host: done when a call returns. Of a GPU: work of one stream, in which a
// tensor that the caller lets go lives on until that work is done. An error says what failed and
// where; no other operation can succeed then.
class PieceExchange {
 public:
  virtual ~PieceExchange() = default;

  // The sum over all ranks of `send` ([ranks * n] fp32), of which this rank gets its piece in
  // `receive` ([n]).
  virtual absl::Status ReduceScatter(const at::Tensor& send, const at::Tensor& receive) = 0;
  // Each rank's `send` ([n], of any type) in the order of ranks into `receive` ([ranks * n]), in
  // which `send` may lie at its own place.
  virtual absl::Status AllGather(const at::Tensor& send, const at::Tensor& receive) = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_PIECE_EXCHANGE_H_
