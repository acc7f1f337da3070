#include "exec/executor/executor_process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "exec/executor/answer_reader.h"
#include "exec/executor/message_channel.h"

namespace tritonrl::executor {
namespace {

constexpr uint64_t kOutboxBytes = uint64_t{1} << 37;  // of addresses; memory comes as it is used
constexpr char kCpuProgram[] = "exec/executor/executor";
constexpr char kCudaProgram[] = "exec/executor/cuda_executor";
constexpr size_t kMaxPrinted = 32 << 20;  // bytes for one request; more than the executor sends

// Which GPU, and where the compiler of kernels and its sandbox are.
void AddGpuEnvironment(const std::string& gpu,
                       std::vector<std::pair<std::string, std::string>>* environment) {
  for (const char* name :
       {"CUDA_VISIBLE_DEVICES", "TRITONRL_RUNFILES", "RUNFILES_DIR", "TEST_SRCDIR",
        "TEST_WORKSPACE", "TRITONRL_PYTHON", "TRITONRL_SITE_PACKAGES", "TRITONRL_BWRAP", "PATH"}) {
    if (const char* const value = getenv(name); value != nullptr) {
      environment->emplace_back(name, value);
    }
  }
  // Of a name that is there twice the later one counts.
  if (!gpu.empty()) environment->emplace_back("CUDA_VISIBLE_DEVICES", gpu);
  environment->emplace_back("CUDA_CACHE_DISABLE", "1");
}

SubprocessOptions CommandOf(const ProcessOptions& options, const std::string& program, int socket,
                            int outbox, int inbox) {
  SubprocessOptions command;
  command.argv = {program, absl::StrCat("--threads=", options.threads)};
  command.clear_env = true;
  // Where an unpacked archive has its libraries.
  if (const char* const folders = getenv("LD_LIBRARY_PATH"); folders != nullptr) {
    command.env = {{"LD_LIBRARY_PATH", folders}};
  }
  if (options.device != "cpu") {
    const bool none = options.sandbox == SandboxKind::kNone;
    command.argv.push_back(absl::StrCat("--sandbox=", none ? "none" : "bubblewrap"));
    AddGpuEnvironment(options.gpu, &command.env);
  }
  command.cwd = "/";
  command.out = Stdio::Null();
  command.err = Stdio::Null();  // what it prints may be a candidate's
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  command.err = Stdio::Inherit();
#endif
  command.pass_fds = {{socket, kControlSocket}, {outbox, kOutboxMemory}, {inbox, kInboxMemory}};
  command.parent_death_signal = SIGKILL;
  return command;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutorProcess>> ExecutorProcess::Start(
    const ProcessOptions& options) {
  if (options.device != "cpu" && options.device != "cuda") {
    return absl::InvalidArgumentError("executors run kernels on the cpu or on cuda");
  }
  std::string program = options.program;
  if (program.empty()) {
    ASSIGN_OR_RETURN(program, Runfile(options.device == "cpu" ? kCpuProgram : kCudaProgram));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Inbox> inbox, Inbox::Create());
  auto outbox = std::make_shared<SharedMemory>();
  ASSIGN_OR_RETURN(*outbox, SharedMemory::Create("executor_outbox", kOutboxBytes));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "make", "a socket for an executor");
  }
  absl::StatusOr<Subprocess> process =
      Subprocess::Start(CommandOf(options, program, ends[1], outbox->fd(), inbox->reader()));
  close(ends[1]);
  if (!process.ok()) {
    close(ends[0]);
    return process.status();
  }
  std::unique_ptr<ExecutorProcess> executor(
      new ExecutorProcess(*std::move(process), ends[0], options));
  executor->inbox_ = std::move(inbox);
  ASSIGN_OR_RETURN(executor->outbox_.memory, outbox->Map(kOutboxBytes));
  executor->outbox_.keeps = std::move(outbox);
  Answer ready;
  const absl::Status received =
      ReceiveMessage(ends[0], &ready, kMaxAnswerBytes, absl::Now() + options.start_timeout);
  if (!received.ok()) return executor->End(received);
  RETURN_IF_ERROR(AddContext(ReadStatus(ready), "an executor does not start"));
  ASSIGN_OR_RETURN(executor->gpu_, ReadGpu(ready.ready()));
  return executor;
}

ExecutorProcess::~ExecutorProcess() {
  process_.Kill();
  close(socket_);
}

absl::StatusOr<Answer> ExecutorProcess::Ask(const Request& request,
                                            const std::vector<int>& descriptors,
                                            absl::Time deadline, const Print& print,
                                            const HandOver& hand_over) {
  if (!ended_.ok()) return ended_;
  const absl::Time latest = deadline + grace_;
  const absl::Status sent = SendMessage(socket_, request, kMaxRequestBytes, latest, descriptors);
  if (absl::IsResourceExhausted(sent)) return sent;
  if (!sent.ok()) return End(sent);
  size_t printed = 0;
  while (true) {
    Answer answer;
    const absl::Status received = ReceiveMessage(socket_, &answer, kMaxAnswerBytes, latest);
    if (!received.ok()) return End(received);
    if (answer.kind_case() == Answer::kHandover) {
      RETURN_IF_ERROR(Obey(answer.handover(), latest, hand_over));
      continue;
    }
    if (answer.kind_case() != Answer::kPrinted) return answer;
    printed += answer.printed().size() + 1;
    if (printed > kMaxPrinted) return Distrust(absl::InvalidArgumentError("it prints too much"));
    if (print != nullptr) print(answer.printed());
  }
}

absl::Status ExecutorProcess::Obey(const Handover& message, absl::Time latest,
                                   const HandOver& hand_over) {
  if (hand_over == nullptr) {
    return Distrust(absl::InvalidArgumentError("it hands over what nobody asked for"));
  }
  const absl::Status obeyed = hand_over(message);
  if (!ended_.ok()) return ended_;
  Request request;
  request.mutable_go_on()->set_code(static_cast<int32_t>(obeyed.code()));
  request.mutable_go_on()->set_error(std::string(obeyed.message()));
  const absl::Status sent = SendMessage(socket_, request, kMaxRequestBytes, latest);
  return sent.ok() ? sent : End(sent);
}

absl::Status ExecutorProcess::Distrust(const absl::Status& status) {
  return End(absl::InvalidArgumentError(status.message()));
}

absl::Status ExecutorProcess::End(const absl::Status& status) {
  const bool late = absl::IsDeadlineExceeded(status);
  // An end by itself has its own exit status by now; another signal does not change it.
  const ExitStatus exit = process_.Kill();
  if (late) {
    ended_ = absl::DeadlineExceededError("the executor did not stop in time, and was killed");
  } else if (absl::IsUnavailable(status)) {
    ended_ = absl::AbortedError(absl::StrCat("the executor ended with ", exit.ToString()));
  } else {
    ended_ = absl::AbortedError(
        absl::StrCat("the executor sent what makes no sense: ", status.message()));
  }
  Log(LogLevel::kWarning, absl::StrCat("executor ", pid(), ": ", ended_.message()));
  return ended_;
}

bool ExecutorProcess::alive() {
  return ended_.ok() && !process_.Wait(absl::ZeroDuration()).has_value();
}

int64_t ExecutorProcess::resident_bytes() const {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat("/proc/", pid(), "/statm"));
  if (!text.ok()) return 0;
  const std::vector<std::string> numbers = absl::StrSplit(*text, ' ');
  int64_t pages = 0;
  if (numbers.size() < 2 || !absl::SimpleAtoi(numbers[1], &pages)) return 0;
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace tritonrl::executor
