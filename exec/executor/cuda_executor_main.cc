// The process in which candidates' commands run on a GPU.
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/add.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/cuda/compile_workers.h"
#include "exec/device/cuda/context.h"
#include "exec/device/cuda/cuda_arena.h"
#include "exec/device/cuda/cuda_compiler.h"
#include "exec/device/cuda/cuda_window.h"
#include "exec/device/cuda/replay_timer.h"
#include "exec/device/torch_errors.h"
#include "exec/executor/confined_compilers.h"
#include "exec/executor/executor_program.h"

ABSL_FLAG(std::string, sandbox, "bubblewrap", "how the compilers are confined, or none");

namespace tritonrl::executor {
namespace {

// A kernel is compiled twice at once: as it is, and with tags.
constexpr int kCompileWorkers = 2;
// Of the GPU's memory, between candidates: of the arena, and of torch.
constexpr int64_t kMostKept = int64_t{4} << 30;
constexpr int64_t kMostKeptByTorch = int64_t{1} << 30;

// A kernel that stores nothing.
constexpr char kEmptyKernel[] = R"(module {
  tt.func public @warm_up(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    tt.return
  }
}
)";

class CudaMachine : public Machine {
 public:
  static absl::StatusOr<std::unique_ptr<Machine>> Make() {
    auto machine = std::make_unique<CudaMachine>();
    // They start before the GPU is there, of which they inherit nothing.
    ConfinedCompilersOptions options;
    options.count = kCompileWorkers;
    ASSIGN_OR_RETURN(options.sandbox, ParseSandboxKind(absl::GetFlag(FLAGS_sandbox)));
    auto processes = StartConfinedCompilers(options);
    RETURN_IF_ERROR(AddContext(processes.status(), "no compiler"));
    ASSIGN_OR_RETURN(machine->workers_,
                     device::CompileWorkers::CreateOver({}, *std::move(processes)));
    ASSIGN_OR_RETURN(machine->context_, device::CudaContext::Create());
    ASSIGN_OR_RETURN(machine->arena_, device::CudaArena::Create(machine->context_.get()));
    machine->compiler_ = std::make_unique<device::CudaCompiler>(
        machine->context_.get(), machine->workers_.get(), machine->arena_->tag_distance());
    return machine;
  }

  absl::Status WarmUp() override {
    RETURN_IF_ERROR(device::CatchTorch([this] {
      WarmUpThreads();
      WarmUpOperators(at::TensorOptions().device(arena_->device()));
      (void)device::CatchTorch([&] { (void)at::add(at::ones({2}), at::ones({3})); });
    }));
    RETURN_IF_ERROR(WarmUpKernels());
    return device::CatchTorch([this] { WarmUpGraph(); });
  }

  ServedDevice Served() override {
    ServedDevice served;
    served.make = [this](device::SessionOptions options) {
      return std::make_unique<device::Session>(std::move(options), arena_.get(), compiler_.get());
    };
    served.make_timed = [this](device::Session* session, const device::ReplayOptions& options,
                               bool direct) {
      return absl::StatusOr<std::unique_ptr<device::TimedCall>>(
          device::ReplayTimer::Prepare(session, context_.get(), options, direct));
    };
    served.open_window = [this](int fd, int64_t bytes) {
      return device::OpenCudaWindow(context_.get(), fd, bytes);
    };
    served.gpu = context_->description();
    served.rest = [this] {
      arena_->Reset();
      if (arena_->physical_bytes() > kMostKept) arena_->Trim();
      TrimTorch();
    };
    served.worn = [this] { return IsBroken() || workers_->running() < kCompileWorkers; };
    served.broken = [this] { return IsBroken(); };
    return served;
  }

 private:
  void TrimTorch() {
    device::CatchTorch([this] {
      const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(arena_->device().index());
      if (stats.reserved_bytes[0].current <= kMostKeptByTorch) return;
      c10::cuda::CUDACachingAllocator::emptyCache();
    }).IgnoreError();
  }

  // An operator of torch may have been the first to see a kernel's error.
  bool IsBroken() {
    const CUresult state = context_->driver().cuStreamQuery(context_->stream());
    if (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY) context_->set_poisoned();
    return context_->poisoned();
  }

  // What operators of candidates take: the generator, copies from and to the host, libraries of
  // products and convolutions.
  static void WarmUpOperators(const at::TensorOptions& gpu) {
    for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
      const at::Tensor numbers = at::randn({64, 64}, gpu).to(type);
      const at::Tensor image = at::randn({1, 4, 8, 8}, gpu).to(type);
      const at::Tensor weight = at::randn({4, 4, 3, 3}, gpu).to(type);
      (void)at::cat({at::matmul(numbers, numbers), numbers}).sum().item<double>();
      (void)at::conv2d(image, weight);
      (void)at::batch_norm(image, {}, {}, {}, {}, /*training=*/true, 0.1, 1e-5, true);
      (void)numbers.t().contiguous().cpu();
    }
    const at::Tensor bytes = at::ones({1 << 16}, gpu.dtype(at::kByte));
    (void)at::bincount(bytes, {}, 256).cpu();
    (void)at::equal(bytes, bytes.clone());
    const at::Tensor host = at::empty({1 << 20}, at::TensorOptions().pinned_memory(true));
    host.copy_(at::randn({1 << 20}, gpu), /*non_blocking=*/true);
    (void)host.to(gpu.device());
    device::WaitFor(gpu.device());
  }

  absl::Status WarmUpKernels() {
    RETURN_IF_ERROR(compiler_->CompileTtir(kEmptyKernel, {}).status());
    ASSIGN_OR_RETURN(char* const place, arena_->Reserve(1));
    RETURN_IF_ERROR(arena_->Commit(place, 1));
    RETURN_IF_ERROR(arena_->CommitTags(place, 1).status());
    arena_->Decommit(place, 1);
    arena_->Reset();
    return absl::OkStatus();
  }

  void WarmUpGraph() {
    const at::Tensor numbers = at::ones({16}, at::TensorOptions().device(arena_->device()));
    at::cuda::CUDAGraph graph;
    graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    (void)numbers.zero_();
    graph.capture_end();
    graph.replay();
    device::WaitFor(arena_->device());
  }

  std::unique_ptr<device::CompileWorkers> workers_;
  std::unique_ptr<device::CudaContext> context_;
  std::unique_ptr<device::CudaArena> arena_;
  std::unique_ptr<device::CudaCompiler> compiler_;
};

}  // namespace
}  // namespace tritonrl::executor

int main(int argc, char** argv) {
  tritonrl::executor::RunExecutorProgram(argc, argv, tritonrl::executor::DeviceKind::kCuda,
                                         tritonrl::executor::CudaMachine::Make);
}
