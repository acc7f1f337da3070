// Learning from the groups of a step as they come, see Learner::LearnEarly.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/torch_status.h"
#include "trainer/learner.h"
#include "trainer/packing.h"

namespace tritonrl {

absl::StatusOr<int64_t> Learner::LearnEarly(const RlGroup& group, int64_t step) {
  RETURN_IF_ERROR(ValidateRlBatch({group}, options_.objective));
  BeginEarly(step);
  const size_t before = early_.passed;
  AddGroup(group, static_cast<double>(options_.early_groups), &early_.part);
  RETURN_IF_ERROR(
      CatchTorch(absl::StrCat("learning in step ", step), "set micro_batch_tokens lower", [&] {
        PassEarly(/*all=*/false);
        return absl::OkStatus();
      }));
  return static_cast<int64_t>(early_.passed - before);
}

void Learner::BeginEarly(int64_t step) {
  if (early_.step == step) return;
  early_ = Early();
  early_.step = step;
  passes_.DropEarly();
}

void Learner::PassEarly(bool all) {
  const std::span<const RlItem> items = std::span(early_.part.items).subspan(early_.passed);
  auto packs = PackInOrder(LengthsOf(items), options_.micro_batch_tokens);
  if (!all && !packs.empty()) packs.pop_back();
  for (const std::vector<int>& pack : packs) {
    ForwardBackward(items, pack, /*early=*/true, &early_.totals);
    early_.passed += pack.size();
  }
}

absl::Status Learner::LearnRest(const RlBatch& batch, int64_t step, LearnStats* stats) {
  BeginEarly(step);
  const double expected = static_cast<double>(options_.early_groups);
  for (const RlGroup& group : batch) AddGroup(group, expected, &early_.part);
  ASSIGN_OR_RETURN(const PartSizes all, SumSizes(early_.part, stats));
  // Groups of which no sample counts are known only now. What went through the model before, and so
  // all of it, weighs as if there were none.
  const double factor = all.groups == 0 ? 1 : expected / all.groups;
  if (factor != 1) {
    PassEarly(/*all=*/true);
    passes_.ScaleEarly(factor);
    for (RlItem& item : early_.part.items) item.group_weight *= factor;
    for (const at::Tensor& sums : early_.totals.statistics) sums[kLossSum].mul_(factor);
  }
  Early early = std::exchange(early_, Early());
  const std::vector<RlItem>& items = early.part.items;
  if (all.samples == 0) {
    RETURN_IF_ERROR(LeaveOut(early.part, &early.totals, stats));
    return Finish(early.totals, stats);
  }
  const std::span<const RlItem> rest = std::span(items).subspan(early.passed);
  RETURN_IF_ERROR(
      Accumulate(rest, PackInOrder(LengthsOf(rest), options_.micro_batch_tokens), &early.totals));
  RETURN_IF_ERROR(Update(step, items, stats));
  return Finish(early.totals, stats);
}

}  // namespace tritonrl
