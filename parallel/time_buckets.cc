#include "parallel/time_buckets.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "base/status.h"
#include "parallel/shard_plan.h"

namespace tritonrl {
namespace {

constexpr int kTimed = 3;

}  // namespace

absl::StatusOr<BucketTimes> TimeBuckets(int64_t elements, at::ScalarType weights, at::Device device,
                                        DataParallel* ranks) {
  const ShardPlan plan(elements, ranks->size(), elements);
  const at::TensorOptions fp32 = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor gradients = at::zeros({elements}, fp32);
  const at::Tensor share = at::zeros({plan.LocalSize(ranks->rank())}, fp32);
  const at::Tensor all_weights = at::zeros({elements}, fp32.dtype(weights));
  BucketTimes best;
  for (int i = 0; i <= kTimed; ++i) {
    RETURN_IF_ERROR(ranks->Barrier());
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(ranks->ReduceBucket(plan, 0, gradients, share));
    RETURN_IF_ERROR(ranks->FinishBuckets(gradients, "the trial of a sum"));
    const absl::Time reduced = absl::Now();
    RETURN_IF_ERROR(ranks->GatherBucket(plan, 0, all_weights));
    RETURN_IF_ERROR(ranks->FinishBuckets(all_weights, "the trial of an exchange"));
    double seconds[2] = {absl::ToDoubleSeconds(reduced - begin),
                         absl::ToDoubleSeconds(absl::Now() - reduced)};
    RETURN_IF_ERROR(ranks->Max(seconds));
    if (i == 0) continue;
    best.reduce = i == 1 ? seconds[0] : std::min(best.reduce, seconds[0]);
    best.gather = i == 1 ? seconds[1] : std::min(best.gather, seconds[1]);
  }
  return best;
}

}  // namespace tritonrl
