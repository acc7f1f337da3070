// collectives_test starts this program under mpirun with the name of the case, sums, as its
// argument. On a machine with two GPUs, run the case gpu_sums from an archive of tools/bundle.sh:
//   mpirun -n 2 ./run collectives_test_program gpu_sums
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "parallel/collectives.h"
#include "parallel/process_group.h"

namespace tritonrl {
namespace {

absl::Status Expect(bool holds, const char* what) {
  return holds ? absl::OkStatus() : absl::InternalError(std::string("wrong: ") + what);
}

// An all-reduce and a broadcast, launched directly or captured and replayed as a CUDA graph.
class SumAndShare {
 public:
  SumAndShare(Collectives* sum, const at::Tensor& x, const at::Tensor& shared)
      : sum_(sum), x_(x), shared_(shared), stream_(c10::cuda::getStreamFromPool()) {}
  ~SumAndShare() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }

  absl::Status Launch() {
    RETURN_IF_ERROR(sum_->AllReduce(x_));
    return sum_->Broadcast(shared_, 0);
  }
  absl::Status Capture() {
    const c10::cuda::CUDAStreamGuard on(stream_);
    cudaGraph_t graph = nullptr;
    cudaDeviceSynchronize();
    cudaStreamBeginCapture(stream_.stream(), cudaStreamCaptureModeThreadLocal);
    RETURN_IF_ERROR(Launch());
    RETURN_IF_ERROR(Expect(cudaStreamEndCapture(stream_.stream(), &graph) == cudaSuccess &&
                               cudaGraphInstantiate(&graph_, graph, 0) == cudaSuccess,
                           "a captured sum"));
    cudaGraphDestroy(graph);
    return absl::OkStatus();
  }
  absl::Status Replay() {
    cudaDeviceSynchronize();
    at::cuda::CUDAEvent done;
    RETURN_IF_ERROR(
        Expect(cudaGraphLaunch(graph_, stream_.stream()) == cudaSuccess, "a replayed sum"));
    done.record(stream_);
    return sum_->Await([&done] { return done.query(); }, "a replay");
  }

 private:
  Collectives* const sum_;
  const at::Tensor x_, shared_;
  const c10::cuda::CUDAStream stream_;
  cudaGraphExec_t graph_ = nullptr;
};

// Tests all-reduce and broadcast as tensor parallelism uses them.
absl::Status Sums(ProcessGroup* ranks, at::Device device) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Collectives> sum, ranks->NewStreamCollectives(device));
  const at::Tensor numbers = at::arange(5000, at::TensorOptions(device).dtype(at::kFloat));
  const at::Tensor x = numbers.mul(ranks->rank() + 1);
  const at::Tensor shared = at::full({3}, ranks->rank() + 7, numbers.options().dtype(at::kInt));
  RETURN_IF_ERROR(sum->AllReduce(x));
  RETURN_IF_ERROR(sum->Broadcast(shared, 0));
  RETURN_IF_ERROR(Expect(x.equal(numbers.mul(3)), "AllReduce"));
  RETURN_IF_ERROR(Expect(shared.equal(at::full_like(shared, 7)), "Broadcast"));
  if (!device.is_cuda()) return absl::OkStatus();
  const at::Tensor half = at::full({999}, ranks->rank() + 1, x.options().dtype(at::kBFloat16));
  SumAndShare steps(sum.get(), half, shared);
  RETURN_IF_ERROR(steps.Launch());
  RETURN_IF_ERROR(Expect(half.equal(at::full_like(half, 3)), "a sum of bf16"));
  RETURN_IF_ERROR(steps.Capture());
  for (int replay = 0; replay < 3; ++replay) {
    half.fill_(ranks->rank() + 2);
    shared.fill_(ranks->rank() + replay);
    RETURN_IF_ERROR(steps.Replay());
    RETURN_IF_ERROR(Expect(half.equal(at::full_like(half, 5)), "a replayed sum's numbers"));
    RETURN_IF_ERROR(Expect(shared.equal(at::full_like(shared, replay)), "a replayed share"));
  }
  return absl::OkStatus();
}

// Tests short messages, and a long one, which MPI sends only once the receiver is ready.
absl::Status Messages(ProcessGroup* ranks) {
  Collectives* const mail = ranks->collectives();
  const absl::Duration soon = absl::Seconds(30);
  const std::string text(5000001, 'x');
  if (ranks->is_root()) {
    RETURN_IF_ERROR(mail->SendToAll("first", soon));
    RETURN_IF_ERROR(mail->SendToAll(text, soon));
    absl::StatusOr<std::optional<RankMessage>> message = mail->Poll();
    while (message.ok() && !message->has_value()) message = mail->Poll();
    RETURN_IF_ERROR(message.status());
    RETURN_IF_ERROR(Expect((*message)->from == 1 && (*message)->text.empty(), "Poll"));
    const auto late = mail->Receive(1, absl::Milliseconds(50));
    return Expect(absl::IsDeadlineExceeded(late.status()), "nothing to receive");
  }
  ASSIGN_OR_RETURN(const std::string first, mail->Receive(0, soon));
  ASSIGN_OR_RETURN(const std::string second, mail->Receive(0, soon));
  RETURN_IF_ERROR(Expect(first == "first" && second == text, "texts in order"));
  return mail->Send(0, "", soon);
}

absl::Status Run(const std::string& what, ProcessGroup* ranks) {
  if (what == "gpu_sums") {
    const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(ranks->local_rank()));
    const c10::cuda::CUDAGuard guard(device);
    RETURN_IF_ERROR(Sums(ranks, device));
  } else {
    RETURN_IF_ERROR(Sums(ranks, at::kCPU));
    RETURN_IF_ERROR(Messages(ranks));
  }
  std::printf("rank %d of %d ok\n", ranks->rank(), ranks->size());
  return ranks->Barrier();
}

int Main(const std::string& what) {
  auto ranks = ProcessGroup::Join(absl::Seconds(60));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  return ExitCodeFor(Run(what, ranks->get()), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return argc == 2 ? tritonrl::Main(argv[1]) : 2; }
