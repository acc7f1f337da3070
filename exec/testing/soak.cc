#include "exec/testing/soak.h"

#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "exec/interpreter_backend.h"
#include "exec/testing/pool_options.h"
#include "exec/testing/process_tree.h"
#include "exec/testing/soak_plan.h"
#include "exec/testing/softmax.h"

namespace tritonrl {
namespace {

WorkerPoolOptions PoolOptions(const SoakOptions& options) {
  WorkerPoolOptions pool;
  if (!options.torch_runner) return FakePoolOptions(options.workers);
  pool.workers = options.workers;
  pool.limits.set_memory_bytes(512 << 20);
  return pool;
}

// Names that a supervisor leaves in shared folders if it forgets something.
std::set<std::string> NamesOfOurs() {
  std::set<std::string> found;
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    const auto names = ListDirectory(folder);
    for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
      if (absl::StartsWith(name, "tritonrl-")) found.insert(JoinPath(folder, name));
    }
  }
  return found;
}

// Control groups named after this process, in any hierarchy below `folder`.
void FindGroups(const std::string& folder, int depth, std::vector<std::string>* found) {
  const auto names = ListDirectory(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = JoinPath(folder, name);
    if (absl::StartsWith(name, absl::StrCat("tritonrl-", getpid(), "-"))) found->push_back(path);
    if (depth > 0 && DirectoryExists(path)) FindGroups(path, depth - 1, found);
  }
}

class Soak {
 public:
  Soak(const SoakOptions& options, SoakReport* report)
      : options_(options),
        report_(report),
        plan_(PlanSoak(options.count, options.evil_share, options.seed, options.torch_runner)) {}

  absl::Status Run() {
    const std::set<std::string> before = NamesOfOurs();
    const std::set<pid_t> children = Descendants(getpid());
    ASSIGN_OR_RETURN(backend_, InterpreterBackend::Start(PoolOptions(options_)));
    report_->sandbox = backend_->sandbox_description();
    const absl::Time start = absl::Now();
    RunAll();
    report_->seconds = absl::ToDoubleSeconds(absl::Now() - start);
    report_->counts = backend_->pool().counts();
    backend_.reset();
    for (const std::string& name : NamesOfOurs()) {
      if (before.count(name) == 0) report_->left.push_back(name);
    }
    for (const pid_t pid : Descendants(getpid())) {
      if (children.count(pid) == 0) report_->left.push_back(absl::StrCat("process ", pid));
    }
    FindGroups("/sys/fs/cgroup", 4, &report_->left);
    return absl::OkStatus();
  }

 private:
  void RunAll() {
    // One more caller than workers, so that a job always waits.
    std::vector<std::thread> callers;
    for (int i = 0; i <= options_.workers; ++i) {
      callers.emplace_back([this] {
        for (int at = next_++; at < options_.count; at = next_++) RunOne(plan_[at]);
      });
    }
    for (std::thread& caller : callers) caller.join();
  }

  void RunOne(const SoakCase& soak) {
    ExecRequest request;
    request.set_task_id(absl::StrCat(soak.id));
    request.set_reference_source(options_.torch_runner ? kSoftmaxReference : "pass");
    request.set_candidate_source(soak.source);
    request.set_trials(1);
    request.mutable_limits()->set_wall_seconds(soak.wall_seconds);
    const auto result = backend_->Run(request, absl::Now() + absl::Minutes(5));
    absl::MutexLock lock(&mutex_);
    ++report_->kinds[soak.kind];
    std::string wrong;
    if (result.ok()) {
      ++report_->outcomes[ExecOutcome_Name(result->outcome())];
      wrong = CheckSoakResult(soak, *result);
    } else {
      wrong = absl::StrCat("case ", soak.id, ": ", result.status().message());
    }
    if (!wrong.empty()) report_->wrong.push_back(wrong);
    ++done_;
    if (done_ == options_.count / 20 || done_ == options_.count / 2 || done_ == options_.count) {
      Measure();
    }
    options_.progress(done_);
  }

  void Measure() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    SoakMemory memory = {done_, PrivateBytes(getpid()), 0};
    for (const pid_t pid : Descendants(getpid())) memory.workers += PrivateBytes(pid);
    report_->memory.push_back(memory);
  }

  const SoakOptions options_;
  SoakReport* const report_;
  const std::vector<SoakCase> plan_;
  std::unique_ptr<InterpreterBackend> backend_;
  std::atomic<int> next_{0};
  absl::Mutex mutex_;
  int done_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options) {
  SoakReport report;
  RETURN_IF_ERROR(Soak(options, &report).Run());
  return report;
}

}  // namespace tritonrl
