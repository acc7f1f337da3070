// How long a bucket takes between the ranks.
#ifndef TRITONRL_PARALLEL_TIME_BUCKETS_H_
#define TRITONRL_PARALLEL_TIME_BUCKETS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "parallel/data_parallel.h"

namespace tritonrl {

// Seconds of one bucket alone, from when all ranks begin until the last has ended.
struct BucketTimes {
  double reduce = 0;  // the sum of fp32 gradients
  double gather = 0;  // the exchange of weights
  double both() const { return reduce + gather; }
};

// Times buckets of so many elements, the weights of type `weights`, in the way that `ranks` has
// now: once without a clock, then the best of three. Called by all ranks together, which get the
// same figures. Takes the memory of a bucket of both kinds meanwhile. Error: a lost rank.
absl::StatusOr<BucketTimes> TimeBuckets(int64_t elements, at::ScalarType weights, at::Device device,
                                        DataParallel* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_TIME_BUCKETS_H_
