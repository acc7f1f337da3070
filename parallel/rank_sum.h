// Sums between ranks in the middle of a computation that they share (tensor parallelism).
#ifndef TRITONRL_PARALLEL_RANK_SUM_H_
#define TRITONRL_PARALLEL_RANK_SUM_H_

#include <ATen/core/Tensor.h>

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace tritonrl {

// Used by one thread at a time; all ranks make the same calls in the same order. After an error no
// other call can succeed.
class RankSum {
 public:
  virtual ~RankSum() = default;

  virtual int size() const = 0;

  // x becomes its element-wise sum over all ranks, the same bits on every rank. x is contiguous:
  // fp32 on a CPU, fp32 or bf16 on a GPU. There the sum is work of the current stream like any
  // other: the call waits for nothing, and may be captured in a CUDA graph if it is on all ranks.
  virtual absl::Status Sum(const at::Tensor& x) = 0;
  // Rank 0's x, of any type and contiguous, to all the others in place; in the stream's order too.
  virtual absl::Status Share(const at::Tensor& x) = 0;
  // Until done() is true, which says that a GPU has done what it was given. DeadlineExceeded if it
  // was not in time: then the others are lost, and kernels that wait for them have been ended.
  virtual absl::Status Await(absl::FunctionRef<bool()> done, const char* what) = 0;

  // Called before kernels that wait for lost ranks are ended: CUDA graphs that hold sums must be
  // destroyed in it, as NCCL waits for that.
  virtual void set_before_end(std::function<void()> before_end) {}

  // Asked again and again while the host waits for the others; an error ends the wait with it.
  void set_news(std::function<absl::Status()> news) { news_ = std::move(news); }

 protected:
  absl::Status News() const { return news_ ? news_() : absl::OkStatus(); }

 private:
  std::function<absl::Status()> news_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_RANK_SUM_H_
