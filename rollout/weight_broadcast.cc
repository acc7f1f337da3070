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

absl::Status WeightBroadcast::Begin(uint64_t version,
                                    const std::optional<std::vector<std::string>>& changed) {
  if (!group_->is_root()) return absl::InternalError("only rank 0 of a group sends weights");
  if (update_.has_value()) {
    return absl::FailedPreconditionError("an update of the weights is being sent already");
  }
  began_ = absl::Now();
  WeightUpdate update{.version = version};
  ASSIGN_OR_RETURN(update.pieces,
                   ChangedPieces(weights_->layout(), changed.has_value() ? &*changed : nullptr,
                                 bucket_elements_));
  std::string text = UpdateToText(update);
  RETURN_IF_ERROR(group_->Broadcast(&text));
  RETURN_IF_ERROR(group_->Agree(absl::OkStatus()));
  BeginUpdate(std::move(update));
  return absl::OkStatus();
}

void WeightBroadcast::BeginUpdate(WeightUpdate update) {
  update_ = std::move(update);
  begun_ = 0;
  agreed_ = absl::Now();
}

absl::Status WeightBroadcast::SendUpTo(int64_t end) {
  if (!group_->is_root() || !update_.has_value()) {
    return absl::InternalError("weights are sent without a beginning");
  }
  return Guard([&] { return TravelUpTo(end); });
}

absl::Status WeightBroadcast::End() {
  RETURN_IF_ERROR(SendUpTo(weights_->layout().flat_size));
  return Guard([&] { return Arrive(); });
}

absl::Status WeightBroadcast::Send(uint64_t version,
                                   const std::optional<std::vector<std::string>>& changed) {
  RETURN_IF_ERROR(Begin(version, changed));
  return End();
}

absl::Status WeightBroadcast::TravelUpTo(int64_t end) {
  for (; begun_ < update_->pieces.size() && update_->pieces[begun_].end <= end; ++begun_) {
    if (group_->size() == 1) continue;
    const FlatRange& piece = update_->pieces[begun_];
    RETURN_IF_ERROR(
        group_->BroadcastBucket(weights_->flat().narrow(0, piece.begin, piece.size()), 0));
  }
  return absl::OkStatus();
}

absl::Status WeightBroadcast::Arrive() {
  const WeightUpdate update = *std::exchange(update_, std::nullopt);
  // The sender's sums are computed beside the transfer, the others' after it.
  std::vector<uint64_t> sums;
  if (group_->is_root()) sums = PieceSums(weights_->flat(), update.pieces);
  if (group_->size() > 1) RETURN_IF_ERROR(group_->FinishBuckets(weights_->flat(), kWhat));
  const absl::Time arrived = absl::Now();
  if (!group_->is_root()) sums = PieceSums(weights_->flat(), update.pieces);
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   group_->AllGather(ArrivalToText(update.version, sums)));
  RETURN_IF_ERROR(SameArrivals(all, update.pieces));
  times_ = {.bytes = update.elements() * static_cast<int64_t>(weights_->flat().element_size()),
            .agreement = agreed_ - began_,
            .transfer = arrived - agreed_,
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
  began_ = absl::Now();
  ASSIGN_OR_RETURN(WeightUpdate update, Await(engine, options));
  BeginUpdate(std::move(update));
  RETURN_IF_ERROR(Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(TravelUpTo(weights_->layout().flat_size));
    return Arrive();
  }));
  engine->EndWeightUpdate(version_);
  in_update_ = false;
  return version_;
}

}  // namespace tritonrl
