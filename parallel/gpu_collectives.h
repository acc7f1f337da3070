// Sums, exchanges and broadcasts between the GPUs of the ranks of a job, over NCCL. Every operation
// has a deadline: a rank that died or hangs ends it with a message, though its kernel would wait
// for ever.
#ifndef TRITONRL_PARALLEL_GPU_COLLECTIVES_H_
#define TRITONRL_PARALLEL_GPU_COLLECTIVES_H_

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/bucket_exchange.h"
#include "parallel/shard_plan.h"

namespace tritonrl {

struct GpuCollectivesOptions {
  int rank = 0;
  int size = 1;
  at::Device device = at::Device(at::kCUDA, 0);
  absl::Duration timeout = absl::Minutes(10);  // of each operation
};

// Operations run on a stream of their own, beside what the current stream is given afterwards.
class GpuCollectives : public BucketExchange {
 public:
  // Called by all ranks together, each with a GPU of its own. `broadcast` gives rank 0's text to
  // all.
  static absl::StatusOr<std::unique_ptr<GpuCollectives>> Join(
      const GpuCollectivesOptions& options,
      const std::function<absl::Status(std::string*)>& broadcast);
  ~GpuCollectives() override;
  GpuCollectives(const GpuCollectives&) = delete;
  GpuCollectives& operator=(const GpuCollectives&) = delete;

  // With tensors on the device. After an error no other operation can succeed.
  absl::Status Reduce(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                      const at::Tensor& local, bool add) override;
  absl::Status AwaitReduce(int64_t bucket) override;
  absl::Status Gather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) override;
  absl::Status Broadcast(const at::Tensor& part, int root) override;
  absl::Status Finish(const char* what) override;

 private:
  explicit GpuCollectives(const GpuCollectivesOptions& options);

  absl::Status Init(const ncclUniqueId& id);
  // `code` is what a call gave: waits, while it says that it is in progress.
  absl::Status Check(ncclResult_t code, const char* what, absl::Time deadline);
  // The stream of the operations goes on where the current one is now.
  absl::Status Follow();
  // Until the stream of the operations has reached the event.
  absl::Status Await(const at::cuda::CUDAEvent& event, const char* what);
  absl::Status Late(const char* what);
  // Ends kernels that wait for a rank that is gone.
  void Abort();

  const GpuCollectivesOptions options_;
  const c10::cuda::CUDAStream stream_;
  ncclComm_t comm_ = nullptr;
  // Of each bucket: behind the sum that was begun last.
  std::unordered_map<int64_t, at::cuda::CUDAEvent> reduced_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_GPU_COLLECTIVES_H_
