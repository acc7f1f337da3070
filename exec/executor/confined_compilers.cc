#include "exec/executor/confined_compilers.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "exec/workers/worker.h"
#include "exec/workers/worker_setup.h"

namespace tritonrl::executor {
namespace {

constexpr char kScript[] = "exec/device/cuda/compile_worker.py";
constexpr int kNotConfined = 71;  // exit code of job_process.py if it cannot confine itself
constexpr int64_t kMostMemory = int64_t{16} << 30;  // of each process of a request
constexpr int kMostProcesses = 16;                  // the compiler, which has no threads, and ptxas
constexpr int64_t kMostFile = 256 << 20;            // its answer too
constexpr int64_t kMostFiles = int64_t{1} << 30;    // in its /tmp

ExecLimits LimitsFor(absl::Duration time) {
  ExecLimits limits = DefaultLimits();
  limits.set_wall_seconds(absl::ToDoubleSeconds(time));
  limits.set_cpu_seconds(absl::ToDoubleSeconds(time));
  limits.set_memory_bytes(kMostMemory);
  limits.set_processes(kMostProcesses);
  limits.set_file_bytes(kMostFile);
  limits.set_tmp_bytes(kMostFiles);
  return limits;
}

// Why a request has no answer.
absl::Status ErrorOf(const JobReport& report, bool alive) {
  if (report.end == JobEnd::kTimeout || report.end == JobEnd::kDeadline ||
      report.signal == SIGXCPU) {
    return absl::DeadlineExceededError("the compiler needs too long");
  }
  if (!alive) return absl::InternalError(absl::StrCat("no compiler: ", report.detail));
  if (report.exit_code == kNotConfined) {
    return absl::InternalError(absl::StrCat("a compiler is not confined: ", report.channel));
  }
  return absl::UnavailableError(absl::StrCat(
      "the compiler crashed", report.detail.empty() ? "" : absl::StrCat(": ", report.detail)));
}

class ConfinedProcess : public device::CompileProcess {
 public:
  static absl::StatusOr<std::unique_ptr<device::CompileProcess>> Start(const WorkerConfig& config,
                                                                       const std::string& name) {
    // Without MFD_ALLOW_SEALING, so no request can put seals on it that would stay.
    const int answer = memfd_create("compiled", MFD_CLOEXEC);
    if (answer < 0) return ErrnoStatus(errno, "make", "a memory file");
    std::unique_ptr<ConfinedProcess> process(new ConfinedProcess(answer));
    ASSIGN_OR_RETURN(process->worker_, Worker::Start(config, name));
    return process;
  }
  ~ConfinedProcess() override { close(answer_); }

  absl::StatusOr<std::string> Ask(const std::string& request, absl::Time deadline) override {
    if (ftruncate(answer_, 0) != 0) return absl::InternalError("a file in memory stays as it is");
    const auto give_back = absl::MakeCleanup([this] { (void)!ftruncate(answer_, 0); });
    // With a role the job is not dumpable, so ptxas cannot look into what started it.
    const JobReport report =
        worker_->Run(absl::StrCat(R"({"role":"compiler","request":)", request, "}"),
                     LimitsFor(deadline - absl::Now()), deadline, {{"answer", answer_}});
    if (report.end != JobEnd::kExit || report.exit_code != 0) return ErrorOf(report, alive());
    return ReadAnswer();
  }
  bool alive() const override { return worker_->alive(); }

 private:
  explicit ConfinedProcess(int answer) : answer_(answer) {}

  // All processes that could write to it have ended.
  absl::StatusOr<std::string> ReadAnswer() const {
    struct stat info;
    if (fstat(answer_, &info) != 0) return ErrnoStatus(errno, "look at", "a compiler's answer");
    if (info.st_size > kMostFile) {
      return absl::UnavailableError("the compiler's answer is too long");
    }
    std::string text(static_cast<size_t>(info.st_size), '\0');
    if (!ReadAt(answer_, 0, info.st_size, text.data(), "a compiler's answer").ok()) {
      return absl::InternalError("a compiler's answer cannot be read");
    }
    return text;
  }

  const int answer_;  // a file in memory
  std::unique_ptr<Worker> worker_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<device::CompileProcess>>> StartConfinedCompilers(
    const ConfinedCompilersOptions& options) {
  RETURN_IF_ERROR(CheckSandbox(options.sandbox));
  WorkerPoolOptions setup;
  setup.sandbox = options.sandbox;
  setup.runner = options.runner;
  setup.extra_python_dirs = {options.folder};
  if (options.folder.empty()) {
    ASSIGN_OR_RETURN(const std::string script, Runfile(kScript));
    setup.extra_python_dirs = {DirName(script)};
  }
  // Removed on return: what is ready has imported everything. An executor is killed at its end, so
  // it would leave the folder behind.
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedSources> sources, StagePythonSources(setup));
  ASSIGN_OR_RETURN(const WorkerConfig config, MakeWorkerConfig(setup, sources->path()));
  std::vector<std::unique_ptr<device::CompileProcess>> processes;
  for (int i = 0; i < options.count; ++i) {
    ASSIGN_OR_RETURN(processes.emplace_back(),
                     ConfinedProcess::Start(config, absl::StrCat(sources->id(), "-compiler", i)));
  }
  return processes;
}

}  // namespace tritonrl::executor
