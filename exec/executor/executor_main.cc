// The process in which candidates' commands run; executor_pool.h starts it. Not for people.
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/CPUAllocator.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/device/arena.h"
#include "exec/device/kernel_table.h"
#include "exec/device/torch_errors.h"
#include "exec/device/ttir_compiler.h"
#include "exec/executor/confinement.h"
#include "exec/executor/executor.pb.h"
#include "exec/executor/executor_server.h"
#include "exec/executor/message_channel.h"
#include "exec/executor/outbox.h"

ABSL_FLAG(std::string, device, "cpu", "where candidates' kernels run: cpu");
ABSL_FLAG(int, threads, 1, "threads of LibTorch's operators");

namespace tritonrl::executor {
namespace {

constexpr size_t kMaxKernels = 512;    // compiled ones that are kept
constexpr uint8_t kOverDefault = 100;  // priority of an allocator

// What loads libraries, reads files or starts threads when it is done for the first time.
absl::Status WarmUp() {
  return device::CatchTorch([] {
    const at::Tensor numbers = at::randn({256, 256});
    (void)at::add(at::matmul(numbers, numbers), numbers).sum().item<double>();
    at::parallel_for(0, 1 << 16, 1, [](int64_t, int64_t) {});
    // Errors look for the place that threw them.
    (void)device::CatchTorch([&] { (void)at::add(numbers, at::ones({3})); });
    std::thread([] {}).join();
  });
}

// Where kernels run: memory of candidates, and what makes kernels of their Triton IR.
struct Machine {
  std::unique_ptr<device::Arena> arena;
  std::unique_ptr<device::KernelCompiler> compiler;
};

absl::StatusOr<Machine> MakeMachine(const std::string& device) {
  Machine machine;
  if (device != "cpu") {
    return absl::InvalidArgumentError("--device: this executor runs kernels on the cpu only");
  }
  ASSIGN_OR_RETURN(machine.arena, device::Arena::Create());
  machine.compiler = std::make_unique<device::TtirCompiler>();
  return machine;
}

absl::Status RunExecutor() {
  RETURN_IF_ERROR(ConfineEarly());
  at::set_num_threads(absl::GetFlag(FLAGS_threads));
  ASSIGN_OR_RETURN(const Machine machine, MakeMachine(absl::GetFlag(FLAGS_device)));
  ASSIGN_OR_RETURN(const std::unique_ptr<Outbox> outbox, Outbox::Create(kOutboxMemory));
  c10::SetCPUAllocator(outbox.get(), kOverDefault);
  device::KernelCache kernels(machine.compiler.get(), kMaxKernels);
  RETURN_IF_ERROR(WarmUp());
  RETURN_IF_ERROR(ConfineForGood());
  const MakeSession make = [&](device::SessionOptions options) {
    return std::make_unique<device::Session>(std::move(options), machine.arena.get(), &kernels);
  };
  return Serve(make, outbox.get());
}

// Why the process ends, for whoever started it.
void Report(const absl::Status& status) {
  Answer answer;
  answer.set_code(static_cast<int32_t>(status.code()));
  answer.set_error(std::string(status.message()));
  (void)SendMessage(kControlSocket, answer, kMaxAnswerBytes, absl::Now() + absl::Seconds(1));
}

}  // namespace
}  // namespace tritonrl::executor

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = tritonrl::executor::RunExecutor();
  if (!status.ok()) tritonrl::executor::Report(status);
  // No destructor: some would run after the allocator's.
  _exit(status.ok() ? 0 : 1);
}
