#ifndef TRITONRL_PARALLEL_COLLECTIVES_H_
#define TRITONRL_PARALLEL_COLLECTIVES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/zero_shard_plan.h"

// The interface for collectives and messages between the ranks of a process group.

namespace tritonrl {

// A message and the rank that sent it.
struct RankMessage {
  int from = 0;
  std::string text;
};

// Only one thread at a time may make calls. All ranks make the same collective calls in the same
// order. Every wait has a deadline. After a collective has failed, each later collective returns
// Unavailable; messages still work.
//
// On a GPU a collective runs after the work that is already in the current stream. The
// implementation defines whether later work of the current stream waits for the collective
// (NcclCollectives::Ordering).
class Collectives {
 public:
  // Maximum size of a message in bytes.
  static constexpr int64_t kMaxMessageBytes = int64_t{256} << 20;

  virtual ~Collectives() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Replaces x (contiguous; fp32 on a CPU, fp32 or bf16 on a GPU) by its element-wise sum over all
  // ranks, which has the same bits on every rank.
  virtual absl::Status AllReduce(const at::Tensor& x) = 0;
  // Sums a bucket of `full` ([flat_size] fp32, contiguous) over all ranks. Writes this rank's shard
  // of the sum to `local` ([LocalSize(rank)] fp32) at the shard's offset, or with `accumulate` adds
  // it there.
  virtual absl::Status ReduceScatter(const ZeroShardPlan& plan, int64_t bucket,
                                     const at::Tensor& full, const at::Tensor& local,
                                     bool accumulate) = 0;
  // Blocks the CPU until the last ReduceScatter of `bucket` and all earlier ones have read `full`.
  // The caller may then overwrite the bucket. The CPU waits instead of the stream, because a stream
  // that waits for a lost rank never ends.
  virtual absl::Status WaitUntilRead(int64_t bucket) = 0;
  // Copies every rank's own shard of a bucket to all ranks, in place in `full` ([flat_size], any
  // type).
  virtual absl::Status AllGather(const ZeroShardPlan& plan, int64_t bucket,
                                 const at::Tensor& full) = 0;
  // Replaces x (contiguous, any type, below 2 GiB) by rank `root`'s x.
  virtual absl::Status Broadcast(const at::Tensor& x, int root) = 0;
  // Blocks until all collectives so far are complete and their results are visible to the current
  // stream. `what` names the operation in errors.
  virtual absl::Status Wait(const char* what) = 0;
  // Blocks until done() returns true, which means that a GPU has completed its work. Returns
  // DeadlineExceeded if a rank is lost; the kernels that wait for it have then been aborted.
  virtual absl::Status Await(absl::FunctionRef<bool()> done, const char* what) = 0;

  // Sends `message` to every other rank. All sends start before the first wait, so that one slow
  // rank does not delay the others. Returns ResourceExhausted if the message exceeds
  // kMaxMessageBytes, and DeadlineExceeded, naming the rank, if a rank does not receive it within
  // `timeout`. Messages between two ranks keep their order.
  virtual absl::Status SendToAll(const std::string& message, absl::Duration timeout) = 0;
  // Sends `message` to rank `to`, with the errors of SendToAll.
  virtual absl::Status Send(int to, const std::string& message, absl::Duration timeout) = 0;
  // Returns the next message of rank `from`; DeadlineExceeded if none arrives within `timeout`.
  virtual absl::StatusOr<std::string> Receive(int from, absl::Duration timeout) = 0;
  // Returns a message that has arrived from any rank; nullopt if there is none.
  virtual absl::StatusOr<std::optional<RankMessage>> Poll() = 0;

  // `before_abort` runs before the kernels that wait for lost ranks are aborted. It must destroy
  // all CUDA graphs that contain collectives, because NCCL's abort waits for their destruction.
  virtual void set_before_abort(std::function<void()> before_abort) {}
  // `error_poll` runs repeatedly while AllReduce, Broadcast or Await block. If it returns an error,
  // the wait ends with this error.
  void set_error_poll(std::function<absl::Status()> error_poll) {
    error_poll_ = std::move(error_poll);
  }

 protected:
  absl::Status PollError() const { return error_poll_ ? error_poll_() : absl::OkStatus(); }

 private:
  std::function<absl::Status()> error_poll_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_COLLECTIVES_H_
