// Tests on a GPU. Without one they are skipped, and say why.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_TESTING_CUDA_FIXTURE_H_
#define TRITONRL_EXEC_DEVICE_CUDA_TESTING_CUDA_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/device/cuda/compile_workers.h"
#include "exec/device/cuda/context.h"
#include "exec/device/cuda/cuda_arena.h"
#include "exec/device/cuda/cuda_compiler.h"
#include "exec/device/device.h"
#include "gtest/gtest.h"

namespace tritonrl::device {

// What all tests of a program share, as candidates do.
struct TestGpu {
  std::string missing;  // why there is none
  std::unique_ptr<CudaContext> context;
  std::unique_ptr<CudaArena> arena;
  std::unique_ptr<CompileWorkers> workers;
  std::unique_ptr<CudaCompiler> compiler;
};
TestGpu& Gpu();

class CudaFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override { device_.reset(); }

  // A new storage of `count` elements. Returns its number.
  int Make(int64_t count, at::ScalarType type = at::kFloat);
  // All of a storage.
  TensorRef Ref(int storage, at::ScalarType type = at::kFloat);
  at::Tensor View(int storage, at::ScalarType type = at::kFloat) {
    return device_->memory().View(Ref(storage, type));
  }
  int64_t Bytes(int storage, Tag tag) {
    return device_->memory().Count(Ref(storage, at::kByte)).bytes[static_cast<int>(tag)];
  }
  // The number of the corpus' kernel.
  int64_t Kernel(const std::string& corpus_text, const KernelOptions& options = {});
  absl::Status Launch(int64_t kernel, std::array<int32_t, 3> grid, std::vector<Value> arguments);
  Value Argument(int storage, at::ScalarType type = at::kFloat) {
    return Value::Tensor(Ref(storage, type));
  }

  Device::Options options_;
  std::unique_ptr<Device> device_;
};

// The message that sends a kernel, and one that launches it.
std::string KernelMessage(const std::string& ttir, const KernelOptions& options = {});
std::string LaunchMessage(int kernel, const std::string& grid, const std::string& arguments);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_TESTING_CUDA_FIXTURE_H_
