#include "rollout/cuda/bench_timer.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>

namespace tritonrl {
namespace {

constexpr double kGraphMicroseconds = 10000;
constexpr int kMostCalls = 1000;

void Check(cudaError_t error) {
  TORCH_CHECK(error == cudaSuccess, "measuring: ", cudaGetErrorString(error));
}

double TimeOf(cudaStream_t stream, const std::function<void()>& work) {
  cudaEvent_t start, end;
  Check(cudaEventCreate(&start));
  Check(cudaEventCreate(&end));
  Check(cudaEventRecord(start, stream));
  work();
  Check(cudaEventRecord(end, stream));
  Check(cudaEventSynchronize(end));
  float milliseconds = 0;
  Check(cudaEventElapsedTime(&milliseconds, start, end));
  Check(cudaEventDestroy(start));
  Check(cudaEventDestroy(end));
  return 1000.0 * milliseconds;
}

}  // namespace

double MicrosecondsOf(int rotations, const std::function<void(int)>& launch) {
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard on(stream);
  Check(cudaDeviceSynchronize());
  const auto all = [&] {
    for (int i = 0; i < rotations; ++i) launch(i);
  };
  all();  // loads kernels, tries products
  const double once = TimeOf(stream.stream(), all) / rotations;
  const int wanted = static_cast<int>(std::min<double>(kMostCalls, kGraphMicroseconds / once));
  const int calls = std::max(1, wanted / rotations) * rotations;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  Check(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < calls; ++i) launch(i % rotations);
  Check(cudaStreamEndCapture(stream.stream(), &graph));
  Check(cudaGraphInstantiate(&replay, graph, 0));
  Check(cudaGraphLaunch(replay, stream.stream()));
  const double time =
      TimeOf(stream.stream(), [&] { Check(cudaGraphLaunch(replay, stream.stream())); });
  Check(cudaGraphExecDestroy(replay));
  Check(cudaGraphDestroy(graph));
  return time / calls;
}

}  // namespace tritonrl
