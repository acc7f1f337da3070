#include "exec/device/cuda/testing/cuda_fixture.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/json.h"
#include "exec/ttir/testing/corpus.h"

namespace tritonrl::device {
namespace {

absl::Status Fill(TestGpu& gpu) {
  ASSIGN_OR_RETURN(gpu.context, CudaContext::Create());
  ASSIGN_OR_RETURN(gpu.arena, CudaArena::Create(gpu.context.get()));
  ASSIGN_OR_RETURN(gpu.workers, CompileWorkers::Create({}));
  gpu.compiler = std::make_unique<CudaCompiler>(gpu.context.get(), gpu.workers.get(),
                                                gpu.arena->tag_distance());
  return absl::OkStatus();
}

TestGpu* MakeGpu() {
  auto* const gpu = new TestGpu;
  const absl::Status status = Fill(*gpu);
  if (!status.ok()) gpu->missing = std::string(status.message());
  return gpu;
}

}  // namespace

TestGpu& Gpu() {
  static TestGpu* const gpu = MakeGpu();
  return *gpu;
}

void CudaFixture::SetUp() {
  TestGpu& gpu = Gpu();
  if (!gpu.missing.empty()) GTEST_SKIP() << gpu.missing;
  ASSERT_FALSE(gpu.context->poisoned());
  gpu.arena->Reset();
  device_ = std::make_unique<Device>(gpu.arena.get(), gpu.compiler.get(), options_);
}

int CudaFixture::Make(int64_t count, at::ScalarType type) {
  const auto storage = device_->memory().Allocate(count * BytesOf(type), type);
  EXPECT_TRUE(storage.ok()) << storage.status();
  return storage.ok() ? static_cast<int>((*storage)->number) : 0;
}

TensorRef CudaFixture::Ref(int storage, at::ScalarType type) {
  TensorRef tensor;
  tensor.storage = storage;
  tensor.dtype = type;
  tensor.shape = {device_->memory().Find(storage)->bytes / BytesOf(type)};
  tensor.stride = {1};
  return tensor;
}

int64_t CudaFixture::Kernel(const std::string& corpus_text, const KernelOptions& options) {
  const auto kernel =
      device_->kernels().Add({.name = "k", .options = options}, ttir::CorpusTextOf(corpus_text));
  EXPECT_TRUE(kernel.ok()) << corpus_text << ": " << kernel.status();
  return kernel.ok() ? *kernel : -1;
}

absl::Status CudaFixture::Launch(int64_t kernel, std::array<int32_t, 3> grid,
                                 std::vector<Value> arguments) {
  LaunchCommand launch;
  launch.kernel = kernel;
  launch.grid = grid;
  launch.arguments = std::move(arguments);
  RETURN_IF_ERROR(device_->CheckLaunch(launch));
  return device_->RunLaunch(launch);
}

std::string KernelMessage(const std::string& ttir, const KernelOptions& options) {
  return WriteJson({{"do", "kernel"},
                    {"name", "k"},
                    {"ttir", ttir},
                    {"num_warps", options.num_warps},
                    {"num_stages", options.num_stages},
                    {"num_ctas", options.num_ctas},
                    {"shared", 0}});
}

std::string LaunchMessage(int kernel, const std::string& grid, const std::string& arguments) {
  return absl::StrCat(R"({"do":"launch","kernel":)", kernel, R"(,"grid":[)", grid, R"(],"args":[)",
                      arguments, R"(],"line":9})");
}

}  // namespace tritonrl::device
