#include "parallel/gpu_communicator.h"

#include <c10/cuda/CUDAGuard.h>
#include <string.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kGoodbye = absl::Seconds(10);  // for the others to have done their last

// Sleeps that grow.
class Pauses {
 public:
  explicit Pauses(absl::Duration longest) : longest_(longest) {}
  void Pause() {
    absl::SleepFor(pause_);
    pause_ = std::min(pause_ * 2, longest_);
  }

 private:
  const absl::Duration longest_;
  absl::Duration pause_ = absl::Microseconds(5);
};

}  // namespace

ncclDataType_t NcclType(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kHalf:
      return ncclFloat16;
    default:
      return ncclFloat32;
  }
}

absl::StatusOr<std::unique_ptr<GpuCommunicator>> GpuCommunicator::Join(
    const GpuRank& rank, const std::function<absl::Status(std::string*)>& broadcast) {
  std::unique_ptr<GpuCommunicator> group(new GpuCommunicator(rank));
  ncclUniqueId id = {};
  std::string text;
  if (rank.rank == 0) {
    const ncclResult_t made = ncclGetUniqueId(&id);
    if (made == ncclSuccess) text.assign(id.internal, sizeof(id.internal));
  }
  RETURN_IF_ERROR(broadcast(&text));
  if (text.size() != sizeof(id.internal)) {
    return absl::UnavailableError(
        absl::StrCat("rank 0 cannot begin a group of GPUs: ", ncclGetLastError(nullptr)));
  }
  memcpy(id.internal, text.data(), sizeof(id.internal));
  const c10::cuda::CUDAGuard guard(rank.device);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  RETURN_IF_ERROR(
      group->Check(ncclCommInitRankConfig(&group->comm_, rank.size, id, rank.rank, &config),
                   "joining the group of GPUs"));
  return group;
}

GpuCommunicator::~GpuCommunicator() {
  if (comm_ == nullptr) return;
  const absl::Time deadline = absl::Now() + kGoodbye;
  if (CheckUntil(ncclCommFinalize(comm_), "leaving the group of GPUs", deadline).ok()) {
    ncclCommDestroy(comm_);
  } else {
    Abort();
  }
}

void GpuCommunicator::Abort() {
  if (comm_ == nullptr) return;
  if (before_abort_) before_abort_();
  ncclCommAbort(comm_);
  comm_ = nullptr;
}

absl::Status GpuCommunicator::Alive() const {
  return comm_ != nullptr ? absl::OkStatus()
                          : absl::UnavailableError("the group of GPUs has ended");
}

absl::Status GpuCommunicator::Late(const char* what) {
  Abort();
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", rank_.rank, ": the other ranks' GPUs did not answer in ", what, " within ",
      absl::FormatDuration(rank_.timeout), "; one of them is stuck or gone"));
}

absl::Status GpuCommunicator::Check(ncclResult_t code, const char* what) {
  return CheckUntil(code, what, absl::Now() + rank_.timeout);
}

absl::Status GpuCommunicator::CheckUntil(ncclResult_t code, const char* what, absl::Time deadline) {
  Pauses pauses(absl::Microseconds(500));
  while (code == ncclInProgress) {
    if (absl::Now() > deadline) return Late(what);
    pauses.Pause();
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &code);
    if (asked != ncclSuccess) code = asked;
  }
  if (code == ncclSuccess) return absl::OkStatus();
  const std::string why = ncclGetLastError(comm_);
  Abort();
  return absl::UnavailableError(absl::StrCat("rank ", rank_.rank, ": ", what,
                                             " failed: ", ncclGetErrorString(code),
                                             why.empty() ? "" : ": ", why));
}

absl::Status GpuCommunicator::Await(absl::FunctionRef<bool()> done, const char* what,
                                    absl::Duration longest,
                                    absl::FunctionRef<absl::Status()> news) {
  RETURN_IF_ERROR(Alive());
  const absl::Time deadline = absl::Now() + rank_.timeout;
  Pauses pauses(longest);
  while (!done()) {
    ncclResult_t code = ncclSuccess;
    ncclCommGetAsyncError(comm_, &code);
    if (code != ncclSuccess && code != ncclInProgress) return CheckUntil(code, what, deadline);
    if (absl::Status told = news(); !told.ok()) {
      Abort();
      return told;
    }
    if (absl::Now() > deadline) return Late(what);
    pauses.Pause();
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
