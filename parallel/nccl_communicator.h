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

// An NCCL communicator whose waits have a deadline, although NCCL's own kernels wait for a lost
// rank forever.

namespace tritonrl {

// This process's rank in a communicator, and its options.
struct NcclRank {
  int rank = 0;
  int size = 1;
  at::Device device = at::Device(at::kCUDA, 0);
  absl::Duration timeout = absl::Minutes(10);  // of each operation
  // true: an NCCL call returns when its operation is in the stream, as graph capture requires.
  // false: NCCL runs each call in a separate thread, which is slower but can be abandoned while it
  // connects to lost ranks.
  bool blocking = false;
};

// Returns NCCL's type for a bf16, fp16 or fp32 tensor; fp32 for all other types.
ncclDataType_t NcclType(const at::Tensor& tensor);

class NcclCommunicator {
 public:
  // Creates the communicator. All ranks make the call together, each with a different GPU.
  // `broadcast` copies rank 0's text to all ranks.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Join(
      const NcclRank& rank, const std::function<absl::Status(std::string*)>& broadcast);
  // Waits for the other ranks to leave too, up to a deadline.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  const NcclRank& me() const { return rank_; }
  ncclComm_t get() const { return comm_; }
  // `before_abort` runs before the communicator is aborted. It must destroy all CUDA graphs that
  // contain operations of the communicator; otherwise NCCL waits for their destruction forever.
  void set_before_abort(std::function<void()> before_abort) {
    before_abort_ = std::move(before_abort);
  }
  // Returns Unavailable if the communicator has been aborted.
  absl::Status Alive() const;

  // Converts `code`, the result of an NCCL call, to a status. While NCCL reports that the call is
  // in progress, waits for the final result. Aborts the communicator on errors and at the deadline.
  absl::Status Check(ncclResult_t code, const char* what);
  // Waits until done() returns true. Polls done() and `error_poll` with pauses that grow to
  // `max_pause`. Aborts the communicator on errors of NCCL and `error_poll`, and at the deadline.
  absl::Status Await(
      absl::FunctionRef<bool()> done, const char* what,
      absl::Duration max_pause = absl::Microseconds(500),
      absl::FunctionRef<absl::Status()> error_poll = [] { return absl::OkStatus(); });

 private:
  explicit NcclCommunicator(const NcclRank& rank) : rank_(rank) {}

  absl::Status Init(const ncclUniqueId& id);
  absl::Status CheckUntil(ncclResult_t code, const char* what, absl::Time deadline);
  // Aborts the communicator and returns DeadlineExceeded.
  absl::Status DeadlineStatus(const char* what);
  // Ends the kernels that wait for a lost rank.
  void Abort();

  const NcclRank rank_;
  ncclComm_t comm_ = nullptr;
  std::function<void()> before_abort_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_NCCL_COMMUNICATOR_H_
