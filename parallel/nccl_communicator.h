// The NCCL communicator of a job's ranks: what waits for it has a deadline, though kernels that
// wait for a rank which died or hangs would do so for ever.
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

namespace tritonrl {

struct NcclRank {
  int rank = 0;
  int size = 1;
  at::Device device = at::Device(at::kCUDA, 0);
  absl::Duration timeout = absl::Minutes(10);  // of each operation
  // Calls of NCCL end when the operation is in its stream. Else each has a thread of its own, which
  // takes longer, and can be given up while it connects with ranks that are gone.
  bool blocking = false;
};

// NCCL's name of a tensor's type; fp32 for those that it does not know.
ncclDataType_t NcclType(const at::Tensor& tensor);

class NcclCommunicator {
 public:
  // Called by all ranks together, each with a GPU of its own. `broadcast` gives rank 0's text to
  // all.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Join(
      const NcclRank& rank, const std::function<absl::Status(std::string*)>& broadcast);
  // Leaves together with the others, or after a while without them.
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
