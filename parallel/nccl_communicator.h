#ifndef TRITONRL_PARALLEL_NCCL_COMMUNICATOR_H_
#define TRITONRL_PARALLEL_NCCL_COMMUNICATOR_H_

#include <ATen/core/Tensor.h>
#include <nccl.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// The NCCL communicator of a job's ranks. Waits have a deadline, though NCCL's own kernels wait for
// a lost rank for ever.

namespace tritonrl {

struct NcclRank {
  int rank = 0;
  int size = 1;
  at::Device device = at::Device(at::kCUDA, 0);
  absl::Duration timeout = absl::Minutes(10);  // of each operation
  // true: NCCL calls return when the operation is in its stream, as graph capture needs. false:
  // each runs in a thread of its own, which is slower and can be abandoned while it connects to
  // ranks that are gone.
  bool blocking = false;
};

// NCCL's type for a tensor; fp32 for types that it lacks.
ncclDataType_t NcclType(const at::Tensor& tensor);

class NcclCommunicator {
 public:
  // All ranks call it together, each with a GPU of its own. `broadcast` copies rank 0's text to
  // all ranks.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Join(
      const NcclRank& rank, const std::function<absl::Status(std::string*)>& broadcast);
  // Leaves together with the other ranks, or without them after a deadline.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  const NcclRank& me() const { return rank_; }
  ncclComm_t get() const { return comm_; }
  // Called before the communicator is given up: CUDA graphs that hold its operations must be
  // destroyed in it, or NCCL waits for that for ever.
  void set_before_abort(std::function<void()> before_abort) {
    before_abort_ = std::move(before_abort);
  }
  // Unavailable after an error.
  absl::Status Alive() const;

  // `code` is what a call of NCCL gave: waits, while it says that it is in progress.
  absl::Status Check(ncclResult_t code, const char* what);
  // Until done() is true; asked in pauses that grow to `max_pause`. An error of `error_poll`, asked
  // as often, ends the wait too.
  absl::Status Await(
      absl::FunctionRef<bool()> done, const char* what,
      absl::Duration max_pause = absl::Microseconds(500),
      absl::FunctionRef<absl::Status()> error_poll = [] { return absl::OkStatus(); });

 private:
  explicit NcclCommunicator(const NcclRank& rank) : rank_(rank) {}

  absl::Status Init(const ncclUniqueId& id);
  absl::Status CheckUntil(ncclResult_t code, const char* what, absl::Time deadline);
  absl::Status DeadlineStatus(const char* what);
  // Ends kernels that wait for a rank that is gone.
  void Abort();

  const NcclRank rank_;
  ncclComm_t comm_ = nullptr;
  std::function<void()> before_abort_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_NCCL_COMMUNICATOR_H_
