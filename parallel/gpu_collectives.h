// Sums, exchanges and broadcasts between the GPUs of the ranks of a job, over NCCL. Every operation
// has a deadline: a rank that died or hangs ends it with a message, though its kernel would wait
// for ever.
#ifndef TRITONRL_PARALLEL_GPU_COLLECTIVES_H_
#define TRITONRL_PARALLEL_GPU_COLLECTIVES_H_

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "parallel/bucket_exchange.h"
#include "parallel/gpu_communicator.h"
#include "parallel/node_grid.h"
#include "parallel/piece_exchange.h"
#include "parallel/shard_plan.h"

namespace tritonrl {

// Operations run on a stream of their own, beside what the current stream is given afterwards.
class GpuCollectives : public BucketExchange {
 public:
  // On a communicator that nobody else uses.
  explicit GpuCollectives(std::unique_ptr<GpuCommunicator> group);
  ~GpuCollectives() override;

  at::Device device() const { return device_; }

  // Sums and gathers go in two levels from now on (two_level_pieces.h), on the same stream: through
  // the ranks of this rank's node, and through those of its place on every node. Called by all
  // ranks together, like UsePlain, while nothing is under way. If one of the communicators is lost,
  // all are given up at once, as kernels of one may wait behind those of another.
  void UseLevels(const NodeGrid& grid, std::unique_ptr<GpuCommunicator> node,
                 std::unique_ptr<GpuCommunicator> peers);
  // In one operation of all ranks again, as at first; the other communicators are left.
  void UsePlain();

  // With tensors on the device. After an error no other operation can succeed.
  absl::Status Reduce(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                      const at::Tensor& local, bool add) override;
  absl::Status AwaitReduce(int64_t bucket) override;
  absl::Status Gather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) override;
  absl::Status Broadcast(const at::Tensor& part, int root) override;
  absl::Status Finish(const char* what) override;

 private:
  GpuCommunicator* all() const { return groups_[0].get(); }
  // The stream of the operations goes on where the current one is now.
  absl::Status Follow();
  // Until the stream of the operations has reached the event.
  absl::Status Await(const at::cuda::CUDAEvent& event, const char* what);

  // Of all ranks, and with two levels those of the node and of the place.
  std::vector<std::unique_ptr<GpuCommunicator>> groups_;
  const int rank_;
  const at::Device device_;
  const c10::cuda::CUDAStream stream_;
  std::unique_ptr<PieceExchange> pieces_;
  // Of each bucket: behind the sum that was begun last.
  std::unordered_map<int64_t, at::cuda::CUDAEvent> reduced_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_GPU_COLLECTIVES_H_
