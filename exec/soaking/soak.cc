#include "exec/soaking/soak.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/backend/cuda_backend.h"
#include "exec/backend/interpreter_backend.h"
#include "exec/soaking/leftovers.h"
#include "exec/soaking/soak_plan.h"
#include "exec/testing/pool_options.h"
#include "exec/testing/process_tree.h"
#include "exec/testing/softmax.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kLongest = absl::Minutes(5);  // for one candidate, waiting included
// For what runs when the time is over.
constexpr absl::Duration kFinish = absl::Seconds(10);

absl::StatusOr<std::unique_ptr<PythonBackend>> StartBackend(const SoakOptions& options) {
  WorkerPoolOptions pool;
  if (options.torch_runner) {
    pool.workers = options.workers;
    // So little that who fills it gets there before its limit of time, on a machine too that gives
    // out pages slowly. A CUDA context needs some of it.
    pool.limits.set_memory_bytes(options.backend == "cuda" ? int64_t{2} << 30 : 512 << 20);
  } else {
    pool = FakePoolOptions(options.workers);
  }
  ASSIGN_OR_RETURN(pool.sandbox, ParseSandboxKind(options.sandbox));
  if (options.backend == "cuda") {
    ASSIGN_OR_RETURN(auto cuda, CudaBackend::Start(std::move(pool)));
    return std::unique_ptr<PythonBackend>(std::move(cuda));
  }
  ASSIGN_OR_RETURN(auto interpreter, InterpreterBackend::Start(std::move(pool)));
  return std::unique_ptr<PythonBackend>(std::move(interpreter));
}

// Whether the end of the time, not the candidate, may have made this outcome.
bool EndedByDeadline(const absl::StatusOr<ExecResult>& result) {
  if (!result.ok()) return false;
  switch (result->outcome()) {
    case EXEC_NO_WORKER_IN_TIME:
    case EXEC_TIMEOUT:
    case EXEC_REFERENCE_FAILED:
    case EXEC_WORKER_LOST:
      return true;
    default:
      return false;
  }
}

class Soak {
 public:
  explicit Soak(const SoakOptions& options) : options_(options) {}

  absl::StatusOr<SoakReport> Run() {
    Leftovers leftovers;
    const absl::Time begin = absl::Now();
    ASSIGN_OR_RETURN(backend_, StartBackend(options_));
    report_.start_seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    leftovers.NotePool();
    report_.sandbox = backend_->sandbox_description();
    MakePlan();
    if (options_.torch_runner) RETURN_IF_ERROR(WarmUp());
    start_ = absl::Now();
    if (options_.seconds > 0) end_ = start_ + absl::Seconds(options_.seconds);
    std::thread teller([this] {
      while (!ended_.WaitForNotificationWithTimeout(options_.tell_every)) options_.tell(State());
    });
    // Memory is looked at while nothing runs: after a start, halfway, at the end.
    for (const int until : {options_.count / 10, options_.count / 2, options_.count}) {
      RunUntil(until);
      Measure();
    }
    ended_.Notify();
    teller.join();
    Conclude();
    backend_.reset();
    report_.left = leftovers.Find();
    return std::move(report_);
  }

 private:
  void MakePlan() {
    SoakPlanOptions plan;
    plan.count = options_.count;
    plan.evil_share = options_.evil_share;
    plan.seed = options_.seed;
    plan.torch_runner = options_.torch_runner;
    plan.cuda = options_.backend == "cuda";
    plan.fill_memory = absl::StrContains(report_.sandbox, "memory");
    plan.extra_seconds = options_.torch_runner ? options_.extra_seconds : 0;
    plan_ = PlanSoak(plan);
  }

  ExecRequest RequestFor(const SoakCase& soak) const {
    ExecRequest request;
    request.set_task_id(absl::StrCat(soak.id));
    request.set_reference_source(options_.torch_runner ? kSoftmaxReference : "pass");
    request.set_candidate_source(soak.source);
    request.set_trials(1);
    request.set_skip_timing(!options_.timing);
    request.set_skip_gpu_profile(true);  // seconds for each, and nothing that a soak asks for
    request.mutable_limits()->set_wall_seconds(soak.wall_seconds);
    return request;
  }

  // The first jobs of all workers at once take long on a cold machine; the limits of the plan are
  // for warm ones.
  absl::Status WarmUp() {
    std::vector<absl::Status> status(options_.workers);
    std::vector<std::thread> callers;
    for (int i = 0; i < options_.workers; ++i) {
      callers.emplace_back([this, i, &status] {
        SoakCase soak;
        soak.source = kSoftmaxCandidate;
        ExecRequest request = RequestFor(soak);
        request.set_seed(i + 1);  // a run of the reference for each
        const auto result = backend_->Run(request, absl::Now() + kLongest);
        status[i] = result.status();
        if (result.ok() && result->outcome() != EXEC_OK) {
          status[i] = absl::InternalError(absl::StrCat(
              "an honest candidate before the soak: ", ExecOutcome_Name(result->outcome()), ": ",
              result->message()));
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    for (const absl::Status& one : status) RETURN_IF_ERROR(one);
    warm_jobs_ = backend_->pool().counts().jobs;
    return absl::OkStatus();
  }

  void RunUntil(int end) {
    // One more caller than workers, so that a job always waits.
    std::vector<std::thread> callers;
    for (int i = 0; i <= options_.workers; ++i) {
      callers.emplace_back([this, end] {
        while (absl::Now() < end_) {
          const int at = next_++;
          if (at >= end) return;
          RunOne(plan_[at]);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    next_ = std::min<int>(next_, end);
  }

  void RunOne(const SoakCase& soak) {
    {
      absl::MutexLock lock(&mutex_);
      ++running_[soak.kind];
    }
    const absl::Time begin = absl::Now(), deadline = std::min(begin + kLongest, end_ + kFinish);
    const auto result = backend_->Run(RequestFor(soak), deadline);
    const absl::Time now = absl::Now();
    absl::MutexLock lock(&mutex_);
    if (--running_[soak.kind] == 0) running_.erase(soak.kind);
    std::string wrong = result.ok()
                            ? CheckSoakResult(soak, *result)
                            : absl::StrCat("case ", soak.id, ": ", Message(result.status()));
    if (!wrong.empty() && now >= end_ + kFinish && EndedByDeadline(result)) {
      ++report_.unfinished[soak.kind];
      return;
    }
    ++report_.done;
    SoakKind& kind = report_.kinds[soak.kind];
    const double seconds = absl::ToDoubleSeconds(now - begin);
    ++kind.count;
    kind.seconds += seconds;
    kind.longest = std::max(kind.longest, seconds);
    if (result.ok()) ++report_.outcomes[ExecOutcome_Name(result->outcome())];
    if (!wrong.empty()) report_.wrong.push_back(std::move(wrong));
  }

  SoakState State() {
    absl::MutexLock lock(&mutex_);
    SoakState state;
    state.planned = options_.count;
    state.done = report_.done;
    state.wrong = static_cast<int>(report_.wrong.size());
    if (state.wrong > 0) state.last_wrong = report_.wrong.back();
    state.seconds = absl::ToDoubleSeconds(absl::Now() - start_);
    state.running = running_;
    state.kinds = report_.kinds;
    return state;
  }

  void Measure() {
    absl::MutexLock lock(&mutex_);
    // Once the time is over nothing is new between two looks.
    if (!report_.memory.empty() && report_.memory.back().verdicts == report_.done) return;
    SoakMemory memory = {report_.done, PrivateBytes(getpid()), 0};
    for (const pid_t pid : Descendants(getpid())) memory.workers += PrivateBytes(pid);
    report_.memory.push_back(memory);
  }

  void Conclude() {
    absl::MutexLock lock(&mutex_);
    report_.planned = options_.count;
    report_.seconds = absl::ToDoubleSeconds(absl::Now() - start_);
    report_.counts = backend_->pool().counts();
    report_.counts.jobs -= warm_jobs_;
  }

  const SoakOptions options_;
  std::vector<SoakCase> plan_;
  std::unique_ptr<PythonBackend> backend_;
  std::atomic<int> next_{0};
  int64_t warm_jobs_ = 0;
  absl::Time start_, end_ = absl::InfiniteFuture();
  absl::Notification ended_;
  absl::Mutex mutex_;
  std::map<std::string, int> running_ ABSL_GUARDED_BY(mutex_);
  SoakReport report_;  // what RunOne writes: under mutex_
};

}  // namespace

absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options) { return Soak(options).Run(); }

}  // namespace tritonrl
