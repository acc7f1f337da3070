#include "parallel/gpu_collectives.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <utility>

#include "base/status.h"
#include "parallel/gpu_pieces.h"
#include "parallel/padded_buckets.h"
#include "parallel/two_level_pieces.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kLongestPause = absl::Microseconds(500);

}  // namespace

GpuCollectives::GpuCollectives(std::unique_ptr<GpuCommunicator> group)
    : rank_(group->me().rank),
      device_(group->me().device),
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_.index())) {
  groups_.push_back(std::move(group));
  UsePlain();
}

GpuCollectives::~GpuCollectives() { UsePlain(); }

void GpuCollectives::UseLevels(const NodeGrid& grid, std::unique_ptr<GpuCommunicator> node,
                               std::unique_ptr<GpuCommunicator> peers) {
  UsePlain();
  pieces_ = std::make_unique<TwoLevelPieces>(
      grid, std::make_unique<GpuPieces>(node.get(), stream_, " inside a node"),
      std::make_unique<GpuPieces>(peers.get(), stream_, " between nodes"));
  groups_.push_back(std::move(node));
  groups_.push_back(std::move(peers));
  for (const auto& lost : groups_) {
    lost->set_before_abort([this, lost = lost.get()] {
      for (const auto& other : groups_) {
        if (other.get() != lost) other->AbortAside();
      }
    });
  }
}

void GpuCollectives::UsePlain() {
  pieces_ = std::make_unique<GpuPieces>(all(), stream_);
  // First: a level that takes long to end must not end the others.
  for (const auto& group : groups_) group->set_before_abort(nullptr);
  while (groups_.size() > 1) groups_.pop_back();
}

absl::Status GpuCollectives::Follow() {
  RETURN_IF_ERROR(all()->Alive());
  at::cuda::CUDAEvent now;
  now.record(c10::cuda::getCurrentCUDAStream(device_.index()));
  now.block(stream_);
  return absl::OkStatus();
}

absl::Status GpuCollectives::Await(const at::cuda::CUDAEvent& event, const char* what) {
  const auto levels_sound = [&]() -> absl::Status {
    for (size_t level = 1; level < groups_.size(); ++level) {
      RETURN_IF_ERROR(groups_[level]->Sound(what));
    }
    return absl::OkStatus();
  };
  return all()->Await([&event] { return event.query(); }, what, kLongestPause, levels_sound);
}

absl::Status GpuCollectives::Finish(const char* what) {
  RETURN_IF_ERROR(all()->Alive());
  const c10::cuda::CUDAGuard guard(device_);
  at::cuda::CUDAEvent done;
  done.record(stream_);
  done.block(c10::cuda::getCurrentCUDAStream(device_.index()));
  return Await(done, what);
}

absl::Status GpuCollectives::Reduce(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                                    const at::Tensor& local, bool add) {
  RETURN_IF_ERROR(Follow());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  RETURN_IF_ERROR(ReducePadded(plan, bucket, rank_, full, local, add, pieces_.get()));
  reduced_[bucket].record(stream_);
  return absl::OkStatus();
}

absl::Status GpuCollectives::AwaitReduce(int64_t bucket) {
  RETURN_IF_ERROR(all()->Alive());
  const auto reduced = reduced_.find(bucket);
  if (reduced == reduced_.end()) return absl::InternalError("a bucket that was never summed");
  const c10::cuda::CUDAGuard guard(device_);
  return Await(reduced->second, "the sum of gradients");
}

absl::Status GpuCollectives::Gather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) {
  RETURN_IF_ERROR(Follow());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  return GatherPadded(plan, bucket, rank_, full, pieces_.get());
}

absl::Status GpuCollectives::Broadcast(const at::Tensor& part, int root) {
  RETURN_IF_ERROR(Follow());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  void* data = part.mutable_data_ptr();
  return all()->Check(
      ncclBroadcast(data, data, part.nbytes(), ncclUint8, root, all()->get(), stream_.stream()),
      "the broadcast of weights");
}

}  // namespace tritonrl
