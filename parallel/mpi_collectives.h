#ifndef TRITONRL_PARALLEL_MPI_COLLECTIVES_H_
#define TRITONRL_PARALLEL_MPI_COLLECTIVES_H_

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/collectives.h"

// Collectives over MPI through CPU memory, for ranks without a GPU each.

namespace tritonrl {

// Returns the status for the MPI error code of the operation `what`.
absl::Status MpiError(int code, const std::string& what);

// A non-blocking MPI operation.
struct MpiOperation {
  std::string what;                          // name in errors
  std::function<int(MPI_Request*)> start;    // calls MPI_I...
  std::shared_ptr<const void> buffers = {};  // all memory that MPI reads and writes
  int64_t bytes = 0;                         // number of bytes that the operation moves
  std::function<absl::Status()> error_poll = {};
};

// The implementation over MPI. Each collective is complete when its call returns.
class MpiCollectives : public Collectives {
 public:
  // This process is rank `rank` of the `size` ranks of `comm`, which must outlive this object.
  // `timeout` is the deadline of each collective.
  MpiCollectives(MPI_Comm comm, int rank, int size, absl::Duration timeout)
      : comm_(comm), rank_(rank), size_(size), timeout_(timeout) {}
  ~MpiCollectives() override;

  // Starts the operation and polls it until it is complete. Returns DeadlineExceeded, naming the
  // operation and this rank, after `timeout` (default: the object's), or the error of error_poll.
  // After an error MPI may still use the buffers, so they are never freed, and every later
  // collective returns Unavailable.
  absl::Status Run(const MpiOperation& operation, std::optional<absl::Duration> timeout = {});
  MPI_Comm comm() const { return comm_; }
  // Whether a collective has failed, after which the other ranks may never answer again.
  bool lost() const { return lost_; }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status AllReduce(const at::Tensor& x) override;
  absl::Status ReduceScatter(const ZeroShardPlan& plan, int64_t bucket, const at::Tensor& full,
                             const at::Tensor& local, bool accumulate) override;
  absl::Status WaitUntilRead(int64_t bucket) override { return absl::OkStatus(); }
  absl::Status AllGather(const ZeroShardPlan& plan, int64_t bucket,
                         const at::Tensor& full) override;
  absl::Status Broadcast(const at::Tensor& x, int root) override;
  absl::Status Wait(const char* what) override { return absl::OkStatus(); }
  absl::Status Await(absl::FunctionRef<bool()> done, const char* what) override;
  absl::Status SendToAll(const std::string& message, absl::Duration timeout) override;
  absl::Status Send(int to, const std::string& message, absl::Duration timeout) override;
  absl::StatusOr<std::string> Receive(int from, absl::Duration timeout) override;
  absl::StatusOr<std::optional<RankMessage>> Poll() override;

 protected:
  // Returns `status`; sets lost() if it is an error.
  absl::Status Record(absl::Status status);

 private:
  // A message in flight. MPI reads `text` until `request` is complete.
  struct PendingSend {
    int to = 0;
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  absl::Status StartSend(int to, const std::string& message);
  // Waits until all sends are complete.
  absl::Status FlushSends(absl::Duration timeout);
  absl::StatusOr<std::optional<RankMessage>> PollFrom(int source);

  const MPI_Comm comm_;
  const int rank_, size_;
  const absl::Duration timeout_;
  bool lost_ = false;
  std::list<PendingSend> pending_sends_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_MPI_COLLECTIVES_H_
