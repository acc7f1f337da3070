#include "parallel/gpu_communicator.h"

#include <c10/cuda/CUDAGuard.h>
#include <string.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
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

// What a call of NCCL gives that has no deadline of its own, or nothing if it did not end by
// `deadline`: then it goes on in its thread.
std::optional<ncclResult_t> InTime(std::function<ncclResult_t()> call, at::Device device,
                                   absl::Time deadline) {
  struct Outcome {
    absl::Notification done;
    ncclResult_t code = ncclSuccess;
  };
  const auto outcome = std::make_shared<Outcome>();
  std::thread([outcome, device, call = std::move(call)] {
    const c10::cuda::CUDAGuard guard(device);
    outcome->code = call();
    outcome->done.Notify();
  }).detach();
  if (!outcome->done.WaitForNotificationWithDeadline(deadline)) return std::nullopt;
  return outcome->code;
}

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
  RETURN_IF_ERROR(group->Init(id));
  return group;
}

absl::Status GpuCommunicator::Init(const ncclUniqueId& id) {
  constexpr char kWhat[] = "joining the group of GPUs";
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = rank_.blocking ? 1 : 0;
  if (!rank_.blocking) {
    const c10::cuda::CUDAGuard guard(rank_.device);
    return Check(ncclCommInitRankConfig(&comm_, rank_.size, id, rank_.rank, &config), kWhat);
  }
  const auto made = std::make_shared<ncclComm_t>(nullptr);
  const auto code = InTime(
      [made, config, id, rank = rank_]() mutable {
        return ncclCommInitRankConfig(made.get(), rank.size, id, rank.rank, &config);
      },
      rank_.device, absl::Now() + rank_.timeout);
  if (!code.has_value()) return Late(kWhat);
  comm_ = *made;
  return Check(*code, kWhat);
}

GpuCommunicator::~GpuCommunicator() {
  if (comm_ == nullptr) return;
  const absl::Time deadline = absl::Now() + kGoodbye;
  if (rank_.blocking) {
    // One that does not end in time is left alone: this process is at its end too.
    (void)InTime([comm = comm_] { return ncclCommDestroy(comm); }, rank_.device, deadline);
  } else if (CheckUntil(ncclCommFinalize(comm_), "leaving the group of GPUs", deadline).ok()) {
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

void GpuCommunicator::AbortAside() {
  if (comm_ == nullptr) return;
  std::thread([comm = std::exchange(comm_, nullptr), device = rank_.device] {
    const c10::cuda::CUDAGuard guard(device);
    ncclCommAbort(comm);
  }).detach();
}

absl::Status GpuCommunicator::Sound(const char* what) {
  RETURN_IF_ERROR(Alive());
  ncclResult_t code = ncclSuccess;
  ncclCommGetAsyncError(comm_, &code);
  if (code == ncclSuccess || code == ncclInProgress) return absl::OkStatus();
  return CheckUntil(code, what, absl::Now());
}

absl::Status GpuCommunicator::Late(const char* what) {
  Abort();
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", rank_.named, ": the other ranks' GPUs did not answer in ", what, " within ",
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
  return absl::UnavailableError(absl::StrCat("rank ", rank_.named, ": ", what,
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
    RETURN_IF_ERROR(Sound(what));
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
