// An executor's process as the one that started it sees it.
#ifndef TRITONRL_EXEC_EXECUTOR_EXECUTOR_PROCESS_H_
#define TRITONRL_EXEC_EXECUTOR_EXECUTOR_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/subprocess.h"
#include "exec/device/session.h"
#include "exec/executor/executor.pb.h"
#include "exec/executor/inbox.h"
#include "exec/executor/value_message.h"
#include "exec/sandbox/sandbox.h"
#include "exec/workers/shared_memory.h"

namespace tritonrl::executor {

struct ProcessOptions {
  // Path; "": exec/executor/executor, or cuda_executor, from the program's runfiles.
  std::string program;
  std::string device = "cpu";  // or "cuda"
  std::string gpu;             // CUDA_VISIBLE_DEVICES of it; "": that of this process
  SandboxKind sandbox = SandboxKind::kBubblewrap;  // of the compilers that "cuda" needs
  int threads = 1;
  absl::Duration start_timeout = absl::Seconds(120);
  // A request that is late by more than this has its process killed.
  absl::Duration grace = absl::Seconds(3);
};

// Not thread-safe. The process lives no longer than this object, nor than the thread that started
// it.
class ExecutorProcess {
 public:
  // Starts one and waits until it is ready. Errors: NotFound, no such program; the error that the
  // process reports; Aborted, it ended; DeadlineExceeded.
  static absl::StatusOr<std::unique_ptr<ExecutorProcess>> Start(const ProcessOptions& options);
  ~ExecutorProcess();
  ExecutorProcess(const ExecutorProcess&) = delete;
  ExecutorProcess& operator=(const ExecutorProcess&) = delete;

  using Print = std::function<void(absl::string_view)>;
  // Obeys a message that waits for a GoOn, which nobody has checked. An error is told to the
  // process.
  using HandOver = std::function<absl::Status(const Handover& message)>;
  // Sends a request and waits for its answer, which nobody has checked. `print` gets the lines in
  // between, `hand_over` the messages; both may be null. Errors: Aborted, the process ended or sent
  // nonsense; DeadlineExceeded, it was late and was killed; ResourceExhausted, the request is too
  // large.
  absl::StatusOr<Answer> Ask(const Request& request, const std::vector<int>& descriptors,
                             absl::Time deadline, const Print& print = nullptr,
                             const HandOver& hand_over = nullptr);
  // Kills the process after an answer that cannot be; `status` says what is wrong with it.
  absl::Status Distrust(const absl::Status& status);

  // Whether it has not ended. Others may have killed it since it was asked.
  bool alive();
  // OK unless it ended, or was killed, in a request; else the error of that.
  const absl::Status& ended() const { return ended_; }
  pid_t pid() const { return process_.pid(); }
  int64_t resident_bytes() const;  // 0: unknown

  // Where it runs kernels; nullopt on a CPU.
  const std::optional<device::DeviceDescription>& gpu() const { return gpu_; }

  Inbox& inbox() { return *inbox_; }
  const Region& outbox() const { return outbox_; }

 private:
  ExecutorProcess(Subprocess process, int socket, const ProcessOptions& options)
      : process_(std::move(process)), socket_(socket), grace_(options.grace) {}

  absl::Status End(const absl::Status& status);
  absl::Status Obey(const Handover& message, absl::Time latest, const HandOver& hand_over);

  Subprocess process_;
  const int socket_;
  const absl::Duration grace_;
  absl::Status ended_;
  std::optional<device::DeviceDescription> gpu_;
  std::unique_ptr<Inbox> inbox_;
  Region outbox_;
};

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_EXECUTOR_PROCESS_H_
