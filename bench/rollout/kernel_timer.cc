#include "bench/rollout/kernel_timer.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "bench/model/step_measures.h"

namespace tritonrl {
namespace {

constexpr double kGraphMicroseconds = 10000;
constexpr int kMaxCalls = 1000;

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

// A CUDA graph of about 10 ms that calls launch(i) for i = 0 to rotations - 1 in turn; it has run
// once.
class Calls {
 public:
  Calls(int rotations, const std::function<void(int)>& launch)
      : stream_(c10::cuda::getStreamFromPool()) {
    const c10::cuda::CUDAStreamGuard on(stream_);
    Check(cudaDeviceSynchronize());
    const auto all = [&] {
      for (int i = 0; i < rotations; ++i) launch(i);
    };
    all();  // loads kernels and autotunes GEMMs
    const double once = TimeOf(stream_.stream(), all) / rotations;
    const int wanted = static_cast<int>(std::min<double>(kMaxCalls, kGraphMicroseconds / once));
    calls_ = std::max(1, wanted / rotations) * rotations;
    cudaGraph_t graph = nullptr;
    Check(cudaStreamBeginCapture(stream_.stream(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls_; ++i) launch(i % rotations);
    Check(cudaStreamEndCapture(stream_.stream(), &graph));
    Check(cudaGraphInstantiate(&replay_, graph, 0));
    Check(cudaGraphDestroy(graph));
    Run(1);
  }
  ~Calls() { cudaGraphExecDestroy(replay_); }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // Launches the graph `times` times and calls `meanwhile` while it runs. Returns microseconds per
  // call.
  double Run(int times, const std::function<void()>& meanwhile = {}) const {
    const double time = TimeOf(stream_.stream(), [&] {
      for (int i = 0; i < times; ++i) Check(cudaGraphLaunch(replay_, stream_.stream()));
      if (meanwhile) meanwhile();
    });
    return time / (times * calls_);
  }
  int calls() const { return calls_; }

 private:
  const c10::cuda::CUDAStream stream_;
  int calls_ = 0;  // per graph
  cudaGraphExec_t replay_ = nullptr;
};

}  // namespace

double MicrosecondsOf(int rotations, const std::function<void(int)>& launch) {
  return Calls(rotations, launch).Run(1);
}

void AddSustained(Bench* bench, const std::string& setting, int rotations, double amount,
                  const char* unit, const std::function<void(int)>& launch) {
  const Calls calls(rotations, launch);
  const auto times = [&calls](double seconds, double microseconds) {
    return static_cast<int>(seconds * 1e6 / (microseconds * calls.calls())) + 1;
  };
  const double first = calls.Run(times(1, calls.Run(1)));
  GpuPower power(c10::cuda::current_device());
  power.Begin();
  double megahertz = 0;
  const double time = calls.Run(times(2, first), [&] { megahertz = power.Megahertz(); });
  const double watts = power.Watts();
  bench->Add(setting, TimeAndRate(time, amount, unit));
  bench->Add(setting, {{"power", watts, "W"}, {"clock", megahertz, "MHz"}});
}

std::vector<Figure> TimeAndRate(double microseconds, double amount, const char* unit) {
  return {{"time", microseconds, "us"}, {"rate", amount / microseconds * 1e-6, unit}};
}

void* KernelStream() { return c10::cuda::getCurrentCUDAStream().stream(); }

at::Tensor RandomNumbers(at::IntArrayRef shape, at::ScalarType type, double scale) {
  return at::empty(shape, at::TensorOptions(at::kCUDA).dtype(type)).normal_(0, scale);
}

at::Tensor IntsOnGpu(const std::vector<int32_t>& values) {
  const at::Tensor host = at::empty({static_cast<int64_t>(values.size())}, at::kInt);
  std::copy(values.begin(), values.end(), host.data_ptr<int32_t>());
  return host.to(at::kCUDA);
}

}  // namespace tritonrl
