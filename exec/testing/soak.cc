#include "exec/testing/soak.h"

#include <sys/stat.h>
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
#include "exec/cuda_backend.h"
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
  if (options.device != "cuda") pool.limits.set_memory_bytes(512 << 20);
  return pool;
}

// Folders of sources that our workers show in their command lines.
std::set<std::string> StagedFolders() {
  std::set<std::string> found;
  const std::set<pid_t> ours = Descendants(getpid());
  const auto names = ListDirectory("/tmp");
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const std::string path = JoinPath("/tmp", name);
    if (!absl::StartsWith(name, "tritonrl-exec-")) continue;
    for (const pid_t pid : ProcessesNaming(path)) {
      if (ours.count(pid) != 0) found.insert(path);
    }
  }
  return found;
}

// Shared memory files of the candidates' user outside any sandbox.
std::set<std::string> SharedMemoryOfCandidates() {
  std::set<std::string> found;
  const auto names = ListDirectory("/dev/shm");
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    struct stat info;
    const std::string path = JoinPath("/dev/shm", name);
    if (lstat(path.c_str(), &info) == 0 && info.st_uid == kSandboxUid) found.insert(path);
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

absl::StatusOr<std::unique_ptr<PythonBackend>> StartBackend(const SoakOptions& options) {
  WorkerPoolOptions pool = PoolOptions(options);
  ASSIGN_OR_RETURN(pool.sandbox, ParseSandboxKind(options.sandbox));
  if (options.device == "cuda") {
    ASSIGN_OR_RETURN(auto cuda, CudaBackend::Start(std::move(pool)));
    return std::unique_ptr<PythonBackend>(std::move(cuda));
  }
  ASSIGN_OR_RETURN(auto interpreter, InterpreterBackend::Start(std::move(pool)));
  return std::unique_ptr<PythonBackend>(std::move(interpreter));
}

class Soak {
 public:
  Soak(const SoakOptions& options, SoakReport* report) : options_(options), report_(report) {}

  absl::Status Run() {
    const std::set<std::string> before = SharedMemoryOfCandidates();
    const std::set<pid_t> children = Descendants(getpid());
    ASSIGN_OR_RETURN(backend_, StartBackend(options_));
    report_->sandbox = backend_->sandbox_description();
    const std::set<std::string> staged = StagedFolders();
    MakePlan();
    const absl::Time start = absl::Now();
    // Memory is looked at while nothing runs: after a start, halfway, at the end.
    for (const int until : {options_.count / 10, options_.count / 2, options_.count}) {
      RunUntil(until);
      Measure(until);
    }
    report_->seconds = absl::ToDoubleSeconds(absl::Now() - start);
    report_->counts = backend_->pool().counts();
    backend_.reset();
    for (const std::string& path : SharedMemoryOfCandidates()) {
      if (before.count(path) == 0) report_->left.push_back(path);
    }
    for (const std::string& path : staged) {
      if (FileExists(path)) report_->left.push_back(path);
    }
    for (const pid_t pid : Descendants(getpid())) {
      if (children.count(pid) == 0) report_->left.push_back(absl::StrCat("process ", pid));
    }
    FindGroups("/sys/fs/cgroup", 4, &report_->left);
    return absl::OkStatus();
  }

 private:
  void MakePlan() {
    SoakPlanOptions plan;
    plan.count = options_.count;
    plan.evil_share = options_.evil_share;
    plan.seed = options_.seed;
    plan.torch_runner = options_.torch_runner;
    plan.cuda = options_.device == "cuda";
    plan.fill_memory = absl::StrContains(report_->sandbox, "memory");
    // A process that makes a CUDA context takes seconds before the candidate's first line.
    if (options_.torch_runner) plan.extra_seconds = options_.device == "cuda" ? 15 : 2;
    plan_ = PlanSoak(plan);
  }

  void RunUntil(int end) {
    // One more caller than workers, so that a job always waits.
    std::vector<std::thread> callers;
    for (int i = 0; i <= options_.workers; ++i) {
      callers.emplace_back([this, end] {
        for (int at = next_++; at < end; at = next_++) RunOne(plan_[at]);
      });
    }
    for (std::thread& caller : callers) caller.join();
    next_ = end;
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
    options_.progress(++done_);
  }

  void Measure(int verdicts) {
    SoakMemory memory = {verdicts, PrivateBytes(getpid()), 0};
    for (const pid_t pid : Descendants(getpid())) memory.workers += PrivateBytes(pid);
    report_->memory.push_back(memory);
  }

  const SoakOptions options_;
  SoakReport* const report_;
  std::vector<SoakCase> plan_;
  std::unique_ptr<PythonBackend> backend_;
  std::atomic<int> next_{0};
  absl::Mutex mutex_;
  int done_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

bool SoakReport::MemoryIsFlat() const {
  if (memory.empty()) return false;
  const auto flat = [](int64_t first, int64_t last) {
    return last < first + first / 10 + (16 << 20);
  };
  return flat(memory.front().supervisor, memory.back().supervisor) &&
         flat(memory.front().workers, memory.back().workers);
}

absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options) {
  SoakReport report;
  RETURN_IF_ERROR(Soak(options, &report).Run());
  return report;
}

}  // namespace tritonrl
