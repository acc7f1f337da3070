// The process in which candidates' commands run on the CPU.
#include <ATen/ops/add.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <memory>
#include <utility>

#include "base/status.h"
#include "exec/device/arena.h"
#include "exec/device/kernel_table.h"
#include "exec/device/torch_errors.h"
#include "exec/device/ttir_compiler.h"
#include "exec/executor/executor_program.h"

namespace tritonrl::executor {
namespace {

constexpr size_t kMaxKernels = 512;  // compiled ones that are kept

class CpuMachine : public Machine {
 public:
  static absl::StatusOr<std::unique_ptr<Machine>> Make() {
    auto machine = std::make_unique<CpuMachine>();
    ASSIGN_OR_RETURN(machine->arena_, device::Arena::Create());
    return machine;
  }

  absl::Status WarmUp() override {
    return device::CatchTorch([] {
      const at::Tensor numbers = at::randn({256, 256});
      (void)at::add(at::matmul(numbers, numbers), numbers).sum().item<double>();
      WarmUpThreads();
      // Errors look for the place that threw them.
      (void)device::CatchTorch([&] { (void)at::add(numbers, at::ones({3})); });
    });
  }

  ServedDevice Served() override {
    ServedDevice served;
    served.make = [this](device::SessionOptions options) {
      return std::make_unique<device::Session>(std::move(options), arena_.get(), &kernels_);
    };
    served.open_window = device::OpenHostWindow;
    return served;
  }

 private:
  std::unique_ptr<device::Arena> arena_;
  device::TtirCompiler compiler_;
  device::KernelCache kernels_{&compiler_, kMaxKernels};
};

}  // namespace
}  // namespace tritonrl::executor

int main(int argc, char** argv) {
  tritonrl::executor::RunExecutorProgram(argc, argv, tritonrl::executor::DeviceKind::kCpu,
                                         tritonrl::executor::CpuMachine::Make);
}
