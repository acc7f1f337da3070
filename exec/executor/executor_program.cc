#include "exec/executor/executor_program.h"

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/executor/executor.pb.h"
#include "exec/executor/message_channel.h"
#include "exec/executor/outbox.h"

ABSL_FLAG(int, threads, 1, "threads of LibTorch's operators");

namespace tritonrl::executor {
namespace {

constexpr uint8_t kOverDefault = 100;  // priority of an allocator

// Why the process ends, for whoever started it.
void Report(const absl::Status& status) {
  Answer answer;
  answer.set_code(static_cast<int32_t>(status.code()));
  answer.set_error(std::string(status.message()));
  (void)SendMessage(kControlSocket, answer, kMaxAnswerBytes, absl::Now() + absl::Seconds(1));
}

absl::Status RunExecutor(DeviceKind device, const MakeMachine& make) {
  RETURN_IF_ERROR(ConfineEarly(device));
  at::set_num_threads(absl::GetFlag(FLAGS_threads));
  ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine, make());
  ASSIGN_OR_RETURN(const std::unique_ptr<Outbox> outbox, Outbox::Create(kOutboxMemory));
  c10::SetCPUAllocator(outbox.get(), kOverDefault);
  RETURN_IF_ERROR(machine->WarmUp());
  RETURN_IF_ERROR(ConfineForGood(device));
  const absl::Status served = Serve(machine->Served(), outbox.get());
  if (!served.ok()) Report(served);
  // No destructor: some would run after the allocator's, or wait for a kernel that does not end.
  _exit(served.ok() ? 0 : 1);
}

}  // namespace

void WarmUpThreads() {
  at::parallel_for(0, 1 << 16, 1, [](int64_t, int64_t) {});
  std::thread([] {}).join();
}

void RunExecutorProgram(int argc, char** argv, DeviceKind device, const MakeMachine& make) {
  absl::ParseCommandLine(argc, argv);
  Report(RunExecutor(device, make));
  _exit(1);
}

}  // namespace tritonrl::executor
