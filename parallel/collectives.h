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
#include "parallel/shard_plan.h"

// Collectives and messages between the ranks of a process group.

namespace tritonrl {

// A message and the rank that sent it.
struct RankMessage {
  int from = 0;
  std::string text;
};

// One thread at a time makes calls. All ranks make the same collective calls in the same order.
// Every wait has a deadline. After an error each later collective is Unavailable; messages still
// arrive.
//
// On a GPU a collective follows the work that the current stream has so far. The implementation
// says whether it also blocks the current stream (NcclCollectives::Ordering).
class Collectives {
 public:
  // Bytes of the longest message.
  static constexpr int64_t kMaxMessageBytes = int64_t{256} << 20;

  virtual ~Collectives() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Replaces x (contiguous; fp32 on a CPU, fp32 or bf16 on a GPU) by its element-wise sum over all
  // ranks: the same bits on every rank.
  virtual absl::Status AllReduce(const at::Tensor& x) = 0;
  // Sums a bucket of `full` ([flat_size] fp32, contiguous) over all ranks. This rank's shard of the
  // sum replaces its elements of `local` ([LocalSize(rank)] fp32); `accumulate` adds it instead.
  virtual absl::Status ReduceScatter(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                                     const at::Tensor& local, bool accumulate) = 0;
  // Blocks the CPU until the last ReduceScatter of `bucket`, and each one before it, has read
  // `full`: the caller may then overwrite that bucket. The CPU waits, not the stream, because a
  // stream that waits for a lost rank never ends.
  virtual absl::Status WaitUntilRead(int64_t bucket) = 0;
  // Fills a bucket of `full` ([flat_size], any type) in place with every rank's own shard of it.
  virtual absl::Status AllGather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) = 0;
  // Replaces x (contiguous, any type, below 2 GiB) by that of rank `root`.
  virtual absl::Status Broadcast(const at::Tensor& x, int root) = 0;
  // Blocks until all collectives so far are complete and visible to the current stream. `what`
  // names the operation in an error.
  virtual absl::Status Wait(const char* what) = 0;
  // Blocks until done() is true, which tells that a GPU has completed its work. DeadlineExceeded:
  // a rank is lost; kernels that wait for it have been aborted.
  virtual absl::Status Await(absl::FunctionRef<bool()> done, const char* what) = 0;

  // Sends `message` to each other rank. All sends start before the first wait, so that one slow
  // rank does not delay the rest. ResourceExhausted: above kMaxMessageBytes. DeadlineExceeded names
  // the rank that did not receive it within `timeout`. Messages between two ranks keep their order.
  virtual absl::Status SendToAll(const std::string& message, absl::Duration timeout) = 0;
  // The same to rank `to` alone.
  virtual absl::Status Send(int to, const std::string& message, absl::Duration timeout) = 0;
  // The next message of rank `from`. DeadlineExceeded if none arrives within `timeout`.
  virtual absl::StatusOr<std::string> Receive(int from, absl::Duration timeout) = 0;
  // A message that has arrived from any rank, or nothing.
  virtual absl::StatusOr<std::optional<RankMessage>> Poll() = 0;

  // `before_abort` runs before kernels that wait for lost ranks are aborted: it must destroy CUDA
  // graphs that contain collectives, because NCCL waits for those.
  virtual void set_before_abort(std::function<void()> before_abort) {}
  // `error_poll` runs repeatedly while AllReduce, Broadcast or Await block; its error ends the
  // wait.
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
