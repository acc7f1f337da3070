#include "parallel/nccl_collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>

#include <utility>

#include "absl/status/statusor.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// Returns the longest pause between two polls: for kCurrentStream short compared with a generation
// step of some milliseconds, for kOwnStream compared with an optimizer step of some seconds.
absl::Duration MaxPause(NcclCollectives::Ordering ordering) {
  return ordering == NcclCollectives::Ordering::kCurrentStream ? absl::Microseconds(50)
                                                               : absl::Microseconds(500);
}

}  // namespace

NcclCollectives::NcclCollectives(std::unique_ptr<NcclCommunicator> communicator, Ordering ordering,
                                 MPI_Comm comm)
    : MpiCollectives(comm, communicator->me().rank, communicator->me().size,
                     communicator->me().timeout),
      communicator_(std::move(communicator)),
      ordering_(ordering),
      device_(communicator_->me().device),
      own_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_.index())) {}

absl::Status NcclCollectives::CheckTensor(const at::Tensor& x) const {
  if (x.device() == device_ && x.is_contiguous()) return absl::OkStatus();
  return absl::InternalError("NCCL collectives need contiguous tensors on the rank's GPU");
}

absl::Status NcclCollectives::Check(ncclResult_t code, const char* what) {
  return Record(communicator_->Check(code, what));
}

absl::StatusOr<c10::cuda::CUDAStream> NcclCollectives::NextStream() {
  RETURN_IF_ERROR(communicator_->Alive());
  const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(device_.index());
  if (ordering_ == Ordering::kCurrentStream) return current;
  at::cuda::CUDAEvent now;
  now.record(current);
  now.block(own_stream_);
  return own_stream_;
}

absl::Status NcclCollectives::AllReduce(const at::Tensor& x) {
  if (x.is_cpu()) return MpiCollectives::AllReduce(x);
  RETURN_IF_ERROR(CheckTensor(x));
  ASSIGN_OR_RETURN(const c10::cuda::CUDAStream stream, NextStream());
  void* data = x.mutable_data_ptr();
  return Check(ncclAllReduce(data, data, x.numel(), NcclType(x), ncclSum, communicator_->get(),
                             stream.stream()),
               "an all-reduce");
}

absl::Status NcclCollectives::ReduceScatter(const ZeroShardPlan& plan, int64_t bucket,
                                            const at::Tensor& full, const at::Tensor& local,
                                            bool accumulate) {
  if (full.is_cpu()) return MpiCollectives::ReduceScatter(plan, bucket, full, local, accumulate);
  RETURN_IF_ERROR(CheckTensor(full));
  RETURN_IF_ERROR(CheckTensor(local));
  ASSIGN_OR_RETURN(const c10::cuda::CUDAStream stream, NextStream());
  const c10::cuda::CUDAStreamGuard guard(stream);
  const FlatRange range = plan.Bucket(bucket), mine = plan.Shard(bucket, rank());
  const int64_t count = plan.Shard(bucket, 0).size();
  const at::Tensor shard = local.narrow(0, plan.LocalOffset(bucket, rank()), mine.size());
  at::Tensor send = full.narrow(0, range.begin, range.size()), receive = shard;
  const bool equal = range.size() == count * size();
  if (!equal) {  // NCCL needs shards of the same size, so zeros pad the last ones
    send = at::zeros({count * size()}, full.options());
    send.narrow(0, 0, range.size()).copy_(full.narrow(0, range.begin, range.size()));
  }
  const bool staged = accumulate || !equal;
  if (staged) receive = at::empty({count}, local.options());
  RETURN_IF_ERROR(
      Check(ncclReduceScatter(send.const_data_ptr(), receive.mutable_data_ptr(), count,
                              NcclType(send), ncclSum, communicator_->get(), stream.stream()),
            "a reduce-scatter"));
  if (accumulate) {
    shard.add_(receive.narrow(0, 0, mine.size()));
  } else if (staged) {
    shard.copy_(receive.narrow(0, 0, mine.size()));
  }
  reduced_[bucket].record(stream);
  return absl::OkStatus();
}

absl::Status NcclCollectives::WaitUntilRead(int64_t bucket) {
  RETURN_IF_ERROR(communicator_->Alive());
  const auto reduced = reduced_.find(bucket);
  if (reduced == reduced_.end()) return absl::InternalError("no reduce-scatter of this bucket");
  const c10::cuda::CUDAGuard guard(device_);
  return Await([&event = reduced->second] { return event.query(); }, "a reduce-scatter");
}

absl::Status NcclCollectives::AllGather(const ZeroShardPlan& plan, int64_t bucket,
                                        const at::Tensor& full) {
  if (full.is_cpu()) return MpiCollectives::AllGather(plan, bucket, full);
  RETURN_IF_ERROR(CheckTensor(full));
  ASSIGN_OR_RETURN(const c10::cuda::CUDAStream stream, NextStream());
  const c10::cuda::CUDAStreamGuard guard(stream);
  const FlatRange range = plan.Bucket(bucket), mine = plan.Shard(bucket, rank());
  const int64_t count = plan.Shard(bucket, 0).size();
  const at::Tensor elements = full.narrow(0, range.begin, range.size());
  at::Tensor send = full.narrow(0, mine.begin, mine.size()), receive = elements;
  const bool equal = range.size() == count * size();
  if (!equal) {
    send = at::zeros({count}, full.options());
    send.narrow(0, 0, mine.size()).copy_(full.narrow(0, mine.begin, mine.size()));
    receive = at::zeros({count * size()}, full.options());
  }
  RETURN_IF_ERROR(
      Check(ncclAllGather(send.const_data_ptr(), receive.mutable_data_ptr(), send.nbytes(),
                          ncclUint8, communicator_->get(), stream.stream()),
            "an all-gather"));
  if (!equal) elements.copy_(receive.narrow(0, 0, range.size()));
  return absl::OkStatus();
}

absl::Status NcclCollectives::Broadcast(const at::Tensor& x, int root) {
  if (x.is_cpu()) return MpiCollectives::Broadcast(x, root);
  RETURN_IF_ERROR(CheckTensor(x));
  ASSIGN_OR_RETURN(const c10::cuda::CUDAStream stream, NextStream());
  void* data = x.mutable_data_ptr();
  return Check(
      ncclBroadcast(data, data, x.nbytes(), ncclUint8, root, communicator_->get(), stream.stream()),
      "a broadcast");
}

absl::Status NcclCollectives::Wait(const char* what) {
  RETURN_IF_ERROR(communicator_->Alive());
  const c10::cuda::CUDAGuard guard(device_);
  const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(device_.index());
  at::cuda::CUDAEvent done;
  done.record(ordering_ == Ordering::kOwnStream ? own_stream_ : current);
  done.block(current);
  return Await([&done] { return done.query(); }, what);
}

absl::Status NcclCollectives::Await(absl::FunctionRef<bool()> done, const char* what) {
  return Record(
      communicator_->Await(done, what, MaxPause(ordering_), [this] { return PollError(); }));
}

}  // namespace tritonrl
