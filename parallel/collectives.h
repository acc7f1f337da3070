#ifndef TRITONRL_PARALLEL_COLLECTIVES_H_
#define TRITONRL_PARALLEL_COLLECTIVES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/shard_plan.h"

// Buckets of flat buffers (shard_plan.h) between the ranks of a job: summed into what each keeps,
// gathered from it, and sent from one rank to all others.
//
// Sums between ranks in the middle of a computation that they share (tensor parallelism).
//
// Texts from one rank to another, beside the operations that all ranks make together.

namespace tritonrl {

// Used by one thread; all ranks begin the same operations in the same order. An operation may
// still be under way when its call returns: it follows what the current stream has been given
// until then, and its tensors are left alone until Finish.
class ShardCollectives {
 public:
  virtual ~ShardCollectives() = default;

  // The sum over all ranks of a bucket of `full` ([flat_size] fp32); this rank's shard of it goes
  // to its place in `local` ([LocalSize(rank)] fp32), or with `add` is added to what lies there.
  virtual absl::Status ReduceScatter(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                                     const at::Tensor& local, bool add) = 0;
  // Until the bucket's sum that was begun last, and all begun before it, have read `full`: what
  // they have read may then be overwritten. The CPU waits, as it can give up after the deadline: a
  // stream that waited for a rank that is gone could never be waited for again.
  virtual absl::Status AwaitReduceScatter(int64_t bucket) = 0;
  // Each rank's own shard of a bucket of `full` ([flat_size], of any type) to all the others, in
  // place.
  virtual absl::Status AllGather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) = 0;
  // Rank `root`'s elements of `part` (contiguous, of any type, below 2 GiB) to all the others, in
  // place.
  virtual absl::Status Broadcast(const at::Tensor& part, int root) = 0;
  // Until all that was begun is done; the current stream sees it. `what` names it in an error.
  virtual absl::Status Finish(const char* what) = 0;
};

// Used by one thread at a time; all ranks make the same calls in the same order. After an error no
// other call can succeed.
class StreamCollectives {
 public:
  virtual ~StreamCollectives() = default;

  virtual int size() const = 0;

  // x becomes its element-wise sum over all ranks, the same bits on every rank. x is contiguous:
  // fp32 on a CPU, fp32 or bf16 on a GPU. There the sum is work of the current stream like any
  // other: the call waits for nothing, and may be captured in a CUDA graph if it is on all ranks.
  virtual absl::Status AllReduce(const at::Tensor& x) = 0;
  // Rank 0's x, of any type and contiguous, to all the others in place; in the stream's order too.
  virtual absl::Status Broadcast(const at::Tensor& x) = 0;
  // Until done() is true, which says that a GPU has done what it was given. DeadlineExceeded if it
  // was not in time: then the others are lost, and kernels that wait for them have been ended.
  virtual absl::Status Await(absl::FunctionRef<bool()> done, const char* what) = 0;

  // Called before kernels that wait for lost ranks are ended: CUDA graphs that hold sums must be
  // destroyed in it, as NCCL waits for that.
  virtual void set_before_abort(std::function<void()> before_end) {}

  // Asked again and again while the CPU waits for the others; an error ends the wait with it.
  void set_error_poll(std::function<absl::Status()> error_poll) {
    error_poll_ = std::move(error_poll);
  }

 protected:
  absl::Status PollError() const { return error_poll_ ? error_poll_() : absl::OkStatus(); }

 private:
  std::function<absl::Status()> error_poll_;
};

// A text and the rank that it came from.
struct RankMessage {
  int from = 0;
  std::string text;
};

// Used by one thread at a time. What one rank sends another arrives in order.
class PointToPoint {
 public:
  // Of a text. Longer ones are refused by the sender (ResourceExhausted).
  static constexpr int64_t kMaxBytes = int64_t{256} << 20;

  virtual ~PointToPoint() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Sends to each rank but this one. Long texts leave when the other asks for them.
  // DeadlineExceeded with the rank that did not within `timeout`.
  virtual absl::Status SendToAll(const std::string& text, absl::Duration timeout) = 0;
  virtual absl::Status Send(int to, const std::string& text, absl::Duration timeout) = 0;
  // The next text of rank `from`. DeadlineExceeded if none came within `timeout`.
  virtual absl::StatusOr<std::string> Receive(int from, absl::Duration timeout) = 0;
  // A text that some rank has sent already, or nothing.
  virtual absl::StatusOr<std::optional<RankMessage>> Poll() = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_COLLECTIVES_H_
