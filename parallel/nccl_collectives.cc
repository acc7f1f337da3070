#include "parallel/nccl_collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <utility>

#include "base/status.h"

namespace tritonrl {

NcclShardCollectives::NcclShardCollectives(std::unique_ptr<NcclCommunicator> group)
    : group_(std::move(group)),
      rank_(group_->me().rank),
      size_(group_->me().size),
      device_(group_->me().device),
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_.index())) {}

absl::Status NcclShardCollectives::WaitForCurrentStream() {
  RETURN_IF_ERROR(group_->Alive());
  at::cuda::CUDAEvent now;
  now.record(c10::cuda::getCurrentCUDAStream(device_.index()));
  now.block(stream_);
  return absl::OkStatus();
}

absl::Status NcclShardCollectives::Await(const at::cuda::CUDAEvent& event, const char* what) {
  return group_->Await([&event] { return event.query(); }, what);
}

absl::Status NcclShardCollectives::Finish(const char* what) {
  RETURN_IF_ERROR(group_->Alive());
  const c10::cuda::CUDAGuard guard(device_);
  at::cuda::CUDAEvent done;
  done.record(stream_);
  done.block(c10::cuda::getCurrentCUDAStream(device_.index()));
  return Await(done, what);
}

absl::Status NcclShardCollectives::ReduceScatter(const ShardPlan& plan, int64_t bucket,
                                                 const at::Tensor& full, const at::Tensor& local,
                                                 bool add) {
  RETURN_IF_ERROR(WaitForCurrentStream());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  const FlatRange range = plan.Bucket(bucket), mine = plan.Shard(bucket, rank_);
  const int64_t count = plan.Shard(bucket, 0).size();
  const at::Tensor place = local.narrow(0, plan.LocalOffset(bucket, rank_), mine.size());
  at::Tensor send = full.narrow(0, range.begin, range.size()), receive = place;
  const bool equal = range.size() == count * size_;
  if (!equal) {  // shards of one size, the last ones filled up with zeros
    send = at::zeros({count * size_}, full.options());
    send.narrow(0, 0, range.size()).copy_(full.narrow(0, range.begin, range.size()));
  }
  const bool staged = add || !equal;
  if (staged) receive = at::empty({count}, local.options());
  RETURN_IF_ERROR(
      group_->Check(ncclReduceScatter(send.const_data_ptr(), receive.mutable_data_ptr(), count,
                                      NcclType(send), ncclSum, group_->get(), stream_.stream()),
                    "the gradient reduce-scatter"));
  if (add) {
    place.add_(receive.narrow(0, 0, mine.size()));
  } else if (staged) {
    place.copy_(receive.narrow(0, 0, mine.size()));
  }
  reduced_[bucket].record(stream_);
  return absl::OkStatus();
}

absl::Status NcclShardCollectives::AwaitReduceScatter(int64_t bucket) {
  RETURN_IF_ERROR(group_->Alive());
  const auto reduced = reduced_.find(bucket);
  if (reduced == reduced_.end()) return absl::InternalError("a bucket that was never summed");
  const c10::cuda::CUDAGuard guard(device_);
  return Await(reduced->second, "the gradient reduce-scatter");
}

absl::Status NcclShardCollectives::AllGather(const ShardPlan& plan, int64_t bucket,
                                             const at::Tensor& full) {
  RETURN_IF_ERROR(WaitForCurrentStream());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  const FlatRange range = plan.Bucket(bucket), mine = plan.Shard(bucket, rank_);
  const int64_t count = plan.Shard(bucket, 0).size();
  const at::Tensor place = full.narrow(0, range.begin, range.size());
  at::Tensor send = full.narrow(0, mine.begin, mine.size()), receive = place;
  const bool equal = range.size() == count * size_;
  if (!equal) {
    send = at::zeros({count}, full.options());
    send.narrow(0, 0, mine.size()).copy_(full.narrow(0, mine.begin, mine.size()));
    receive = at::zeros({count * size_}, full.options());
  }
  RETURN_IF_ERROR(
      group_->Check(ncclAllGather(send.const_data_ptr(), receive.mutable_data_ptr(), send.nbytes(),
                                  ncclUint8, group_->get(), stream_.stream()),
                    "the weight all-gather"));
  if (!equal) place.copy_(receive.narrow(0, 0, range.size()));
  return absl::OkStatus();
}

absl::Status NcclShardCollectives::Broadcast(const at::Tensor& part, int root) {
  RETURN_IF_ERROR(WaitForCurrentStream());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  void* data = part.mutable_data_ptr();
  return group_->Check(
      ncclBroadcast(data, data, part.nbytes(), ncclUint8, root, group_->get(), stream_.stream()),
      "the broadcast of weights");
}

namespace {

constexpr absl::Duration kMaxPause = absl::Microseconds(50);  // of a step that takes milliseconds

cudaStream_t StreamOf(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

absl::Status CheckPlace(const at::Tensor& x, const NcclRank& me) {
  if (x.device() == me.device && x.is_contiguous()) return absl::OkStatus();
  return absl::InternalError("ranks sum and share contiguous tensors on the GPU they joined with");
}

}  // namespace

absl::Status NcclStreamCollectives::AllReduce(const at::Tensor& x) {
  RETURN_IF_ERROR(group_->Alive());
  RETURN_IF_ERROR(CheckPlace(x, group_->me()));
  void* data = x.mutable_data_ptr();
  return group_->Check(
      ncclAllReduce(data, data, x.numel(), NcclType(x), ncclSum, group_->get(), StreamOf(x)),
      "a tensor-parallel all-reduce");
}

absl::Status NcclStreamCollectives::Broadcast(const at::Tensor& x) {
  RETURN_IF_ERROR(group_->Alive());
  RETURN_IF_ERROR(CheckPlace(x, group_->me()));
  void* data = x.mutable_data_ptr();
  return group_->Check(
      ncclBroadcast(data, data, x.nbytes(), ncclUint8, 0, group_->get(), StreamOf(x)),
      "the broadcast of sampled tokens");
}

absl::Status NcclStreamCollectives::Await(absl::FunctionRef<bool()> done, const char* what) {
  return group_->Await(done, what, kMaxPause, [this] { return PollError(); });
}

}  // namespace tritonrl
