// The time of a recorded call on a GPU, without the candidate's process: its commands are replayed
// as a CUDA graph, so that no host is in the clock.
//
// One timed replay is: what the call changed is put back; then, as one graph, 256 MiB are written
// (so that the L2 cache holds nothing of the inputs), an event, the call's commands, an event.
// Between the two events are only kernels and torch's operators: no poison, no tags, no allocation.
// Each tensor has its own memory, while torch's allocator would use some of it twice.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_REPLAY_TIMER_H_
#define TRITONRL_EXEC_DEVICE_CUDA_REPLAY_TIMER_H_

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAGraph.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/device/cuda/context.h"
#include "exec/device/session.h"

namespace tritonrl::device {

class ReplayTimer {
 public:
  // Replays the call once in full, and then makes it ready to be timed, on the thread that times
  // it. Errors are those of the commands. The session must outlive this, and must not be used for
  // other replays until this is gone.
  static absl::StatusOr<std::unique_ptr<ReplayTimer>> Prepare(Session* session,
                                                              CudaContext* context,
                                                              const ReplayOptions& options);
  ~ReplayTimer();

  // The full replay that Prepare made. All waiting ends at its deadline, as CudaContext::Wait.
  const ReplayResult& first() const { return first_; }

  // Milliseconds of each of `count` timed replays.
  absl::StatusOr<std::vector<double>> Time(int count);
  // The output of the last timed replay, on the host.
  absl::StatusOr<Value> Output();
  // Mean milliseconds of `count` replays command by command, with the host's time for launches, and
  // with the cache as the one before leaves it.
  absl::StatusOr<double> MeanWithLaunches(int count);

  // Empty if the call is replayed as a graph; else why it cannot be. Timed replays are then command
  // by command, behind a wait of the GPU that hides the host's time.
  const std::string& not_a_graph() const { return not_a_graph_; }

 private:
  ReplayTimer(Session* session, CudaContext* context) : session_(session), context_(context) {}
  absl::Status Begin(const ReplayOptions& options);
  absl::Status FindChanges();
  absl::Status Capture();
  absl::Status QueueTimed();
  absl::Status RunBare();
  absl::Status Restore();
  absl::Status Wait();
  absl::StatusOr<double> Elapsed() const;

  Session* session_;
  CudaContext* context_;
  ReplayResult first_;
  uint64_t seed_ = 0;
  absl::Time deadline_ = absl::InfiniteFuture();
  at::Tensor flush_;
  std::vector<std::pair<int64_t, at::Tensor>> restored_;  // storage -> its bytes before the call
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
  std::string not_a_graph_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_REPLAY_TIMER_H_
