// The time of a recorded call on a GPU, without the candidate's process: its commands are replayed
// as a CUDA graph, so that no host is in the clock.
//
// One timed replay is: what the call changed is put back, and what it allocates is poisoned, so
// that nothing that a replay left can spare the next one its work; then, as one graph, 256 MiB are
// written (so that the L2 cache holds nothing of the inputs), an event, the call's commands, an
// event.
// Between the two events are only kernels and torch's operators: no poison, no tags, no allocation.
// Results of torch's operators stay where torch put them.
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
#include "exec/device/call_inputs.h"
#include "exec/device/cuda/context.h"
#include "exec/device/session.h"
#include "exec/device/timed_call.h"

namespace tritonrl::device {

class ReplayTimer : public TimedCall {
 public:
  // Replays the call once in full, and then makes it ready to be timed, on the thread that times
  // it (MakeTimedCall). Errors are those of the commands.
  static absl::StatusOr<std::unique_ptr<ReplayTimer>> Prepare(Session* session,
                                                              CudaContext* context,
                                                              const ReplayOptions& options,
                                                              bool direct = false);
  ~ReplayTimer() override;

  // The full replay that Prepare made.
  const ReplayResult& first() const { return first_; }

  // Waiting ends as that of CudaContext::Wait.
  void set_deadline(absl::Time deadline) override { deadline_ = deadline; }
  absl::StatusOr<std::vector<double>> Time(int count) override;
  absl::StatusOr<Value> Output() override;
  absl::StatusOr<double> MeanWithLaunches(int count) override;
  const std::string& not_a_graph() const override { return not_a_graph_; }

 private:
  ReplayTimer(Session* session, CudaContext* context) : session_(session), context_(context) {}
  absl::Status Begin(const ReplayOptions& options, bool direct);
  absl::Status FindChanges(const std::vector<WrittenInput>& inputs);
  absl::Status FindChangedInputs(const std::vector<WrittenInput>& inputs);
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
  std::vector<int64_t> allocated_;                        // storages that the call makes
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
  std::string not_a_graph_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_REPLAY_TIMER_H_
