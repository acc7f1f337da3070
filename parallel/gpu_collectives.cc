#include "parallel/gpu_collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <utility>

#include "base/status.h"

namespace tritonrl {
GpuCollectives::GpuCollectives(std::unique_ptr<GpuCommunicator> group)
    : group_(std::move(group)),
      rank_(group_->me().rank),
      size_(group_->me().size),
      device_(group_->me().device),
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_.index())) {}

absl::Status GpuCollectives::Follow() {
  RETURN_IF_ERROR(group_->Alive());
  at::cuda::CUDAEvent now;
  now.record(c10::cuda::getCurrentCUDAStream(device_.index()));
  now.block(stream_);
  return absl::OkStatus();
}

absl::Status GpuCollectives::Await(const at::cuda::CUDAEvent& event, const char* what) {
  return group_->Await([&event] { return event.query(); }, what);
}

absl::Status GpuCollectives::Finish(const char* what) {
  RETURN_IF_ERROR(group_->Alive());
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
  const FlatRange range = plan.Bucket(bucket), mine = plan.Piece(bucket, rank_);
  const int64_t count = plan.Piece(bucket, 0).size();
  const at::Tensor place = local.narrow(0, plan.LocalOffset(bucket, rank_), mine.size());
  at::Tensor send = full.narrow(0, range.begin, range.size()), receive = place;
  const bool equal = range.size() == count * size_;
  if (!equal) {  // pieces of one size, the last ones filled up with zeros
    send = at::zeros({count * size_}, full.options());
    send.narrow(0, 0, range.size()).copy_(full.narrow(0, range.begin, range.size()));
  }
  const bool staged = add || !equal;
  if (staged) receive = at::empty({count}, local.options());
  RETURN_IF_ERROR(
      group_->Check(ncclReduceScatter(send.const_data_ptr(), receive.mutable_data_ptr(), count,
                                      NcclType(send), ncclSum, group_->get(), stream_.stream()),
                    "the sum of gradients"));
  if (add) {
    place.add_(receive.narrow(0, 0, mine.size()));
  } else if (staged) {
    place.copy_(receive.narrow(0, 0, mine.size()));
  }
  reduced_[bucket].record(stream_);
  return absl::OkStatus();
}

absl::Status GpuCollectives::AwaitReduce(int64_t bucket) {
  RETURN_IF_ERROR(group_->Alive());
  const auto reduced = reduced_.find(bucket);
  if (reduced == reduced_.end()) return absl::InternalError("a bucket that was never summed");
  const c10::cuda::CUDAGuard guard(device_);
  return Await(reduced->second, "the sum of gradients");
}

absl::Status GpuCollectives::Gather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) {
  RETURN_IF_ERROR(Follow());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  const FlatRange range = plan.Bucket(bucket), mine = plan.Piece(bucket, rank_);
  const int64_t count = plan.Piece(bucket, 0).size();
  const at::Tensor place = full.narrow(0, range.begin, range.size());
  at::Tensor send = full.narrow(0, mine.begin, mine.size()), receive = place;
  const bool equal = range.size() == count * size_;
  if (!equal) {
    send = at::zeros({count}, full.options());
    send.narrow(0, 0, mine.size()).copy_(full.narrow(0, mine.begin, mine.size()));
    receive = at::zeros({count * size_}, full.options());
  }
  RETURN_IF_ERROR(
      group_->Check(ncclAllGather(send.const_data_ptr(), receive.mutable_data_ptr(), count,
                                  NcclType(send), group_->get(), stream_.stream()),
                    "the exchange of weights"));
  if (!equal) place.copy_(receive.narrow(0, 0, range.size()));
  return absl::OkStatus();
}

absl::Status GpuCollectives::Broadcast(const at::Tensor& part, int root) {
  RETURN_IF_ERROR(Follow());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  void* data = part.mutable_data_ptr();
  return group_->Check(
      ncclBroadcast(data, data, part.nbytes(), ncclUint8, root, group_->get(), stream_.stream()),
      "the broadcast of weights");
}

}  // namespace tritonrl
