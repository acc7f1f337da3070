#include "parallel/gpu_collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <string.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kGoodbye = absl::Seconds(10);  // for the others to have done their last

// Sleeps that grow to half a millisecond.
class Pauses {
 public:
  void Pause() {
    absl::SleepFor(pause_);
    pause_ = std::min(pause_ * 2, absl::Microseconds(500));
  }

 private:
  absl::Duration pause_ = absl::Microseconds(5);
};

ncclDataType_t TypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kHalf:
      return ncclFloat16;
    default:
      return ncclFloat32;
  }
}

}  // namespace

GpuCollectives::GpuCollectives(const GpuCollectivesOptions& options)
    : options_(options),
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, options.device.index())) {}

absl::StatusOr<std::unique_ptr<GpuCollectives>> GpuCollectives::Join(
    const GpuCollectivesOptions& options,
    const std::function<absl::Status(std::string*)>& broadcast) {
  std::unique_ptr<GpuCollectives> group(new GpuCollectives(options));
  ncclUniqueId id = {};
  std::string text;
  if (options.rank == 0) {
    const ncclResult_t made = ncclGetUniqueId(&id);
    if (made == ncclSuccess) text.assign(id.internal, sizeof(id.internal));
  }
  RETURN_IF_ERROR(broadcast(&text));
  if (text.size() != sizeof(id.internal)) {
    return absl::UnavailableError(
        absl::StrCat("rank 0 cannot begin a group of GPUs: ", ncclGetLastError(nullptr)));
  }
  memcpy(id.internal, text.data(), sizeof(id.internal));
  RETURN_IF_ERROR(group->Init(id));
  return group;
}

absl::Status GpuCollectives::Init(const ncclUniqueId& id) {
  const c10::cuda::CUDAGuard guard(options_.device);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return Check(ncclCommInitRankConfig(&comm_, options_.size, id, options_.rank, &config),
               "joining the group of GPUs", absl::Now() + options_.timeout);
}

GpuCollectives::~GpuCollectives() {
  if (comm_ == nullptr) return;
  const absl::Time deadline = absl::Now() + kGoodbye;
  if (Check(ncclCommFinalize(comm_), "leaving the group of GPUs", deadline).ok()) {
    ncclCommDestroy(comm_);
  } else {
    Abort();
  }
}

void GpuCollectives::Abort() {
  if (comm_ != nullptr) ncclCommAbort(comm_);
  comm_ = nullptr;
}

absl::Status GpuCollectives::Late(const char* what) {
  Abort();
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", options_.rank, ": the other ranks' GPUs did not answer in ", what, " within ",
      absl::FormatDuration(options_.timeout), "; one of them is stuck or gone"));
}

absl::Status GpuCollectives::Check(ncclResult_t code, const char* what, absl::Time deadline) {
  Pauses pauses;
  while (code == ncclInProgress) {
    if (absl::Now() > deadline) return Late(what);
    pauses.Pause();
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &code);
    if (asked != ncclSuccess) code = asked;
  }
  if (code == ncclSuccess) return absl::OkStatus();
  const std::string why = ncclGetLastError(comm_);
  Abort();
  return absl::UnavailableError(absl::StrCat("rank ", options_.rank, ": ", what,
                                             " failed: ", ncclGetErrorString(code),
                                             why.empty() ? "" : ": ", why));
}

absl::Status GpuCollectives::Follow() {
  if (comm_ == nullptr) return absl::UnavailableError("the group of GPUs has ended");
  at::cuda::CUDAEvent now;
  now.record(c10::cuda::getCurrentCUDAStream(options_.device.index()));
  now.block(stream_);
  return absl::OkStatus();
}

absl::Status GpuCollectives::Await(const at::cuda::CUDAEvent& event, const char* what) {
  const absl::Time deadline = absl::Now() + options_.timeout;
  Pauses pauses;
  while (!event.query()) {
    ncclResult_t code = ncclSuccess;
    ncclCommGetAsyncError(comm_, &code);
    if (code != ncclSuccess && code != ncclInProgress) return Check(code, what, deadline);
    if (absl::Now() > deadline) return Late(what);
    pauses.Pause();
  }
  return absl::OkStatus();
}

absl::Status GpuCollectives::Finish(const char* what) {
  if (comm_ == nullptr) return absl::UnavailableError("the group of GPUs has ended");
  const c10::cuda::CUDAGuard guard(options_.device);
  at::cuda::CUDAEvent done;
  done.record(stream_);
  done.block(c10::cuda::getCurrentCUDAStream(options_.device.index()));
  return Await(done, what);
}

absl::Status GpuCollectives::Reduce(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                                    const at::Tensor& local, bool add) {
  RETURN_IF_ERROR(Follow());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  const FlatRange range = plan.Bucket(bucket), mine = plan.Piece(bucket, options_.rank);
  const int64_t count = plan.Piece(bucket, 0).size();
  const at::Tensor place = local.narrow(0, plan.LocalOffset(bucket, options_.rank), mine.size());
  at::Tensor send = full.narrow(0, range.begin, range.size()), receive = place;
  const bool equal = range.size() == count * options_.size;
  if (!equal) {  // pieces of one size, the last ones filled up with zeros
    send = at::zeros({count * options_.size}, full.options());
    send.narrow(0, 0, range.size()).copy_(full.narrow(0, range.begin, range.size()));
  }
  const bool staged = add || !equal;
  if (staged) receive = at::empty({count}, local.options());
  RETURN_IF_ERROR(Check(ncclReduceScatter(send.const_data_ptr(), receive.mutable_data_ptr(), count,
                                          TypeOf(send), ncclSum, comm_, stream_.stream()),
                        "the sum of gradients", absl::Now() + options_.timeout));
  if (add) {
    place.add_(receive.narrow(0, 0, mine.size()));
  } else if (staged) {
    place.copy_(receive.narrow(0, 0, mine.size()));
  }
  reduced_[bucket].record(stream_);
  return absl::OkStatus();
}

absl::Status GpuCollectives::AwaitReduce(int64_t bucket) {
  if (comm_ == nullptr) return absl::UnavailableError("the group of GPUs has ended");
  const auto reduced = reduced_.find(bucket);
  if (reduced == reduced_.end()) return absl::InternalError("a bucket that was never summed");
  const c10::cuda::CUDAGuard guard(options_.device);
  return Await(reduced->second, "the sum of gradients");
}

absl::Status GpuCollectives::Gather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) {
  RETURN_IF_ERROR(Follow());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  const FlatRange range = plan.Bucket(bucket), mine = plan.Piece(bucket, options_.rank);
  const int64_t count = plan.Piece(bucket, 0).size();
  const at::Tensor place = full.narrow(0, range.begin, range.size());
  at::Tensor send = full.narrow(0, mine.begin, mine.size()), receive = place;
  const bool equal = range.size() == count * options_.size;
  if (!equal) {
    send = at::zeros({count}, full.options());
    send.narrow(0, 0, mine.size()).copy_(full.narrow(0, mine.begin, mine.size()));
    receive = at::zeros({count * options_.size}, full.options());
  }
  RETURN_IF_ERROR(Check(ncclAllGather(send.const_data_ptr(), receive.mutable_data_ptr(), count,
                                      TypeOf(send), comm_, stream_.stream()),
                        "the exchange of weights", absl::Now() + options_.timeout));
  if (!equal) place.copy_(receive.narrow(0, 0, range.size()));
  return absl::OkStatus();
}

absl::Status GpuCollectives::Broadcast(const at::Tensor& part, int root) {
  RETURN_IF_ERROR(Follow());
  const c10::cuda::CUDAStreamGuard guard(stream_);
  void* data = part.mutable_data_ptr();
  return Check(ncclBroadcast(data, data, part.nbytes(), ncclUint8, root, comm_, stream_.stream()),
               "the broadcast of weights", absl::Now() + options_.timeout);
}

}  // namespace tritonrl
