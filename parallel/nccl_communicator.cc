#include "parallel/nccl_communicator.h"

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

// Deadline for the other ranks to complete their last operations.
constexpr absl::Duration kShutdownTimeout = absl::Seconds(10);

// Pauses that double up to a limit.
class Backoff {
 public:
  explicit Backoff(absl::Duration max_pause) : longest_(max_pause) {}
  void Pause() {
    absl::SleepFor(pause_);
    pause_ = std::min(pause_ * 2, longest_);
  }

 private:
  const absl::Duration longest_;
  absl::Duration pause_ = absl::Microseconds(5);
};

// Runs an NCCL call, which has no deadline itself, in a separate thread and returns its result.
// Returns nullopt if the call has not returned by `deadline`; its thread then keeps running.
std::optional<ncclResult_t> CallWithDeadline(std::function<ncclResult_t()> call, at::Device device,
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

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Join(
    const NcclRank& rank, const std::function<absl::Status(std::string*)>& broadcast) {
  std::unique_ptr<NcclCommunicator> group(new NcclCommunicator(rank));
  ncclUniqueId id = {};
  std::string text;
  if (rank.rank == 0) {
    const ncclResult_t made = ncclGetUniqueId(&id);
    if (made == ncclSuccess) text.assign(id.internal, sizeof(id.internal));
  }
  RETURN_IF_ERROR(broadcast(&text));
  if (text.size() != sizeof(id.internal)) {
    return absl::UnavailableError(
        absl::StrCat("rank 0 cannot begin a NCCL communicator: ", ncclGetLastError(nullptr)));
  }
  memcpy(id.internal, text.data(), sizeof(id.internal));
  RETURN_IF_ERROR(group->Init(id));
  return group;
}

absl::Status NcclCommunicator::Init(const ncclUniqueId& id) {
  constexpr char kWhat[] = "joining the NCCL communicator";
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = rank_.blocking ? 1 : 0;
  if (!rank_.blocking) {
    const c10::cuda::CUDAGuard guard(rank_.device);
    return Check(ncclCommInitRankConfig(&comm_, rank_.size, id, rank_.rank, &config), kWhat);
  }
  const auto made = std::make_shared<ncclComm_t>(nullptr);
  const auto code = CallWithDeadline(
      [made, config, id, rank = rank_]() mutable {
        return ncclCommInitRankConfig(made.get(), rank.size, id, rank.rank, &config);
      },
      rank_.device, absl::Now() + rank_.timeout);
  if (!code.has_value()) return DeadlineStatus(kWhat);
  comm_ = *made;
  return Check(*code, kWhat);
}

NcclCommunicator::~NcclCommunicator() {
  if (comm_ == nullptr) return;
  const absl::Time deadline = absl::Now() + kShutdownTimeout;
  if (rank_.blocking) {
    // A call that misses the deadline keeps running, because this process is about to end too.
    (void)CallWithDeadline([comm = comm_] { return ncclCommDestroy(comm); }, rank_.device,
                           deadline);
  } else if (CheckUntil(ncclCommFinalize(comm_), "leaving the NCCL communicator", deadline).ok()) {
    ncclCommDestroy(comm_);
  } else {
    Abort();
  }
}

void NcclCommunicator::Abort() {
  if (comm_ == nullptr) return;
  if (before_abort_) before_abort_();
  ncclCommAbort(comm_);
  comm_ = nullptr;
}

absl::Status NcclCommunicator::Alive() const {
  return comm_ != nullptr ? absl::OkStatus()
                          : absl::UnavailableError("the NCCL communicator has ended");
}

absl::Status NcclCommunicator::DeadlineStatus(const char* what) {
  Abort();
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", rank_.rank, ": the other ranks' GPUs did not answer in ", what, " within ",
      absl::FormatDuration(rank_.timeout), "; one of them is stuck or gone"));
}

absl::Status NcclCommunicator::Check(ncclResult_t code, const char* what) {
  return CheckUntil(code, what, absl::Now() + rank_.timeout);
}

absl::Status NcclCommunicator::CheckUntil(ncclResult_t code, const char* what,
                                          absl::Time deadline) {
  Backoff pauses(absl::Microseconds(500));
  while (code == ncclInProgress) {
    if (absl::Now() > deadline) return DeadlineStatus(what);
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

absl::Status NcclCommunicator::Await(absl::FunctionRef<bool()> done, const char* what,
                                     absl::Duration max_pause,
                                     absl::FunctionRef<absl::Status()> error_poll) {
  RETURN_IF_ERROR(Alive());
  const absl::Time deadline = absl::Now() + rank_.timeout;
  Backoff pauses(max_pause);
  while (!done()) {
    ncclResult_t code = ncclSuccess;
    ncclCommGetAsyncError(comm_, &code);
    if (code != ncclSuccess && code != ncclInProgress) return CheckUntil(code, what, deadline);
    if (absl::Status told = error_poll(); !told.ok()) {
      Abort();
      return told;
    }
    if (absl::Now() > deadline) return DeadlineStatus(what);
    pauses.Pause();
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
