#ifndef TRITONRL_PARALLEL_MPI_COLLECTIVES_H_
#define TRITONRL_PARALLEL_MPI_COLLECTIVES_H_

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "parallel/collectives.h"

// MPI operations with a deadline.
//
// Buckets through CPU memory, by MPI: what ranks without GPUs of their own use.
//
// Sums through CPU memory, by MPI: for ranks on a CPU.
//
// Texts between ranks by MPI.

namespace tritonrl {

// What MPI says about an error code of `what`.
absl::Status MpiError(int code, const std::string& what);

// Begins a non-blocking operation by `start` and polls it. DeadlineExceeded, which names `what`
// and `rank`, when the others did not answer within `timeout`: buffers of the operation must then
// not be freed, and the job ends. `bytes`: that the operation moves, for which a core is kept busy
// at first. `error_poll`: asked now and then if given; an error of its ends the wait, and the job
// too.
absl::Status AwaitMpi(const std::function<int(MPI_Request*)>& start, const std::string& what,
                      int rank, absl::Duration timeout, int64_t bytes = 0,
                      const std::function<absl::Status()>& error_poll = nullptr);

// Each operation is done when its call returns. `timeout` is the deadline of each.
class MpiShardCollectives : public ShardCollectives {
 public:
  // `comm`, in which this process is number `rank` of `size`, must outlive this object.
  MpiShardCollectives(MPI_Comm comm, int rank, int size, absl::Duration timeout)
      : comm_(comm), rank_(rank), size_(size), timeout_(timeout) {}

  absl::Status ReduceScatter(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                             const at::Tensor& local, bool add) override;
  absl::Status AwaitReduceScatter(int64_t bucket) override { return absl::OkStatus(); }
  absl::Status AllGather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) override;
  absl::Status Broadcast(const at::Tensor& part, int root) override;
  absl::Status Finish(const char* what) override { return absl::OkStatus(); }

 private:
  const MPI_Comm comm_;
  const int rank_, size_;
  const absl::Duration timeout_;
};

// Each operation is done when its call returns. `timeout` is the deadline of each.
class MpiStreamCollectives : public StreamCollectives {
 public:
  // `comm`, in which this process is number `rank` of `size`, must outlive this object.
  MpiStreamCollectives(MPI_Comm comm, int rank, int size, absl::Duration timeout)
      : comm_(comm), rank_(rank), size_(size), timeout_(timeout) {}
  ~MpiStreamCollectives() override;

  int size() const override { return size_; }
  absl::Status AllReduce(const at::Tensor& x) override;
  absl::Status Broadcast(const at::Tensor& x) override;
  absl::Status Await(absl::FunctionRef<bool()> done, const char* what) override;

 private:
  // Waits for what `start` begins in buffer_.
  absl::Status Finish(const std::function<int(MPI_Request*)>& start, const char* what);

  const MPI_Comm comm_;
  const int rank_, size_;
  const absl::Duration timeout_;
  std::vector<uint8_t> buffer_;  // what MPI reads and writes
  bool lost_ = false;            // it may go on doing so
};

class MpiPointToPoint : public PointToPoint {
 public:
  // `comm`, in which this process is number `rank` of `size`, must outlive this object.
  MpiPointToPoint(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  ~MpiPointToPoint() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status SendToAll(const std::string& text, absl::Duration timeout) override;
  absl::Status Send(int to, const std::string& text, absl::Duration timeout) override;
  absl::StatusOr<std::string> Receive(int from, absl::Duration timeout) override;
  absl::StatusOr<std::optional<RankMessage>> Poll() override;

 private:
  // On its way to a rank. MPI reads the text until the request is done.
  struct PendingSend {
    int to = 0;
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  absl::Status StartSend(int to, const std::string& text);
  // Until all that was begun has left.
  absl::Status FlushSends(absl::Duration timeout);
  absl::StatusOr<std::optional<RankMessage>> PollFrom(int source);

  const MPI_Comm comm_;
  const int rank_, size_;
  std::list<PendingSend> pending_sends_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_MPI_COLLECTIVES_H_
