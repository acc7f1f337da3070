#include "rollout/weight_broadcast.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "model/torch_status.h"

namespace tritonrl {
namespace {

constexpr char kWhat[] = "the broadcast of weights";

// Sums and copies through host memory take little beside the weights themselves.
template <typename Work>
absl::Status Guard(Work&& work) {
  return CatchTorch(kWhat, "leave the engine less memory", std::forward<Work>(work));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightBroadcast>> WeightBroadcast::Join(
    std::shared_ptr<Weights> weights, DataParallel* group, int64_t bucket_elements) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, group->AllGather(DescribeWeights(*weights)));
  RETURN_IF_ERROR(SameDescriptions(all));
  return std::unique_ptr<WeightBroadcast>(
      new WeightBroadcast(std::move(weights), group, bucket_elements));
}

absl::Status WeightBroadcast::Send(uint64_t version,
                                   const std::optional<std::vector<std::string>>& changed) {
  if (!group_->is_root()) return absl::InternalError("only rank 0 of a group sends weights");
  const absl::Time began = absl::Now();
  WeightUpdate update{.version = version};
  ASSIGN_OR_RETURN(update.pieces,
                   ChangedPieces(weights_->layout(), changed.has_value() ? &*changed : nullptr,
                                 bucket_elements_));
  std::string text = UpdateToText(update);
  RETURN_IF_ERROR(group_->Broadcast(&text));
  RETURN_IF_ERROR(group_->Agree(absl::OkStatus()));
  return Guard([&] { return Exchange(update, began); });
}

absl::Status WeightBroadcast::Exchange(const WeightUpdate& update, absl::Time began) {
  const absl::Time agreed = absl::Now();
  const at::Tensor& flat = weights_->flat();
  if (group_->size() > 1) {
    for (const FlatRange& piece : update.pieces) {
      RETURN_IF_ERROR(group_->BroadcastBucket(flat.narrow(0, piece.begin, piece.size()), 0));
    }
  }
  // The sender's sums are computed beside the transfer, the others' after it.
  std::vector<uint64_t> sums;
  if (group_->is_root()) sums = PieceSums(flat, update.pieces);
  if (group_->size() > 1) RETURN_IF_ERROR(group_->FinishBuckets(flat, kWhat));
  const absl::Time arrived = absl::Now();
  if (!group_->is_root()) sums = PieceSums(flat, update.pieces);
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   group_->AllGather(ArrivalToText(update.version, sums)));
  RETURN_IF_ERROR(SameArrivals(all, update.pieces));
  times_ = {.bytes = update.elements() * static_cast<int64_t>(flat.element_size()),
            .agreement = agreed - began,
            .transfer = arrived - agreed,
            .comparison = absl::Now() - arrived};
  version_ = update.version;
  return absl::OkStatus();
}

absl::StatusOr<WeightUpdate> WeightBroadcast::Await(Engine* engine, const ReceiveOptions& options) {
  std::string text;
  RETURN_IF_ERROR(group_->Broadcast(&text));
  absl::StatusOr<WeightUpdate> update = UpdateFromText(text, weights_->layout().flat_size);
  absl::Status ready = update.status();
  if (ready.ok() && options.expected.value_or(update->version) != update->version) {
    ready = absl::FailedPreconditionError(absl::StrCat("weights of version ", *options.expected,
                                                       " were expected and version ",
                                                       update->version, " was sent"));
  }
  bool begun = false;
  // After an update that went wrong the engine is still in it.
  if (ready.ok() && !in_update_) {
    ready = options.pause.has_value() ? engine->PauseForWeightUpdate(*options.pause)
                                      : engine->BeginWeightUpdate();
    begun = ready.ok();
  }
  const absl::Status agreed = group_->Agree(ready);
  if (!agreed.ok() && begun) engine->EndWeightUpdate(version_);
  RETURN_IF_ERROR(agreed);
  in_update_ = true;
  return update;
}

absl::StatusOr<uint64_t> WeightBroadcast::Receive(Engine* engine, const ReceiveOptions& options) {
  if (group_->is_root()) return absl::InternalError("rank 0 of a group receives no weights");
  const absl::Time began = absl::Now();
  ASSIGN_OR_RETURN(const WeightUpdate update, Await(engine, options));
  RETURN_IF_ERROR(Guard([&] { return Exchange(update, began); }));
  engine->EndWeightUpdate(version_);
  in_update_ = false;
  return version_;
}

}  // namespace tritonrl
