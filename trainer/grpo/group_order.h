// The order in which a step's groups are learned from while some are not complete (learn_early).
#ifndef TRITONRL_TRAINER_GRPO_GROUP_ORDER_H_
#define TRITONRL_TRAINER_GRPO_GROUP_ORDER_H_

#include <optional>
#include <vector>

#include "trainer/grpo/sample_batch.h"

namespace tritonrl {

// Groups come by the length of their longest sample (ties by slot). So the order follows from the
// samples alone and a run can be repeated to the bit, and yet groups come about as they end, as
// samples that are generated side by side get a token each in a step. Returns the place in
// batch.groups of the first one that is not `taken`, once it is certain which one that is (no other
// can still turn out shorter) and all its samples have been judged. Needs SampleGroup::longest.
std::optional<int> NextInOrder(const SampleBatch& batch, const std::vector<bool>& taken);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_GROUP_ORDER_H_
