#include "exec/testing/soak/soak.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/process_tree.h"
#include "exec/testing/run_request.h"
#include "exec/testing/soak/leak_check.h"
#include "exec/testing/soak/soak_plan.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

using Json = nlohmann::ordered_json;

std::string Counts(const std::map<std::string, int>& counts) {
  if (counts.empty()) return "none";
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, " ", entry.second);
  });
}

double Rate(const SoakReport& report) { return report.done / std::max(report.seconds, 1e-9); }

}  // namespace

bool SoakReport::MemoryIsFlat() const {
  if (memory.empty()) return false;
  const auto flat = [](int64_t first, int64_t last) {
    return last < first + first / 10 + (16 << 20);
  };
  return flat(memory.front().supervisor, memory.back().supervisor) &&
         flat(memory.front().workers, memory.back().workers);
}

std::string SoakStateText(const SoakState& state) {
  std::map<std::string, int> done;
  for (const auto& [kind, figures] : state.kinds) done[kind] = figures.count;
  const std::string wrong =
      state.wrong == 0 ? ""
                       : absl::StrCat(", ", state.wrong, " WRONG (last: ", state.last_wrong, ")");
  return absl::StrFormat("soak: %d/%d after %.0f s%s; running: %s; done: %s", state.done,
                         state.planned, state.seconds, wrong, Counts(state.running), Counts(done));
}

std::string SoakReportText(const SoakReport& report) {
  std::string text = absl::StrCat("sandbox: ", report.sandbox, "\n");
  absl::StrAppendFormat(&text, "  %-20s %6s %12s %12s\n", "kind", "count", "mean s", "longest s");
  for (const auto& [kind, figures] : report.kinds) {
    absl::StrAppendFormat(&text, "  %-20s %6d %12.2f %12.2f\n", kind, figures.count,
                          figures.seconds / std::max(figures.count, 1), figures.longest);
  }
  absl::StrAppend(&text, "outcomes:\n");
  for (const auto& [name, count] : report.outcomes) {
    absl::StrAppendFormat(&text, "  %-20s %6d\n", name, count);
  }
  for (const SoakMemory& memory : report.memory) {
    absl::StrAppendFormat(
        &text, "after %5d verdicts: supervisor %.1f MiB, its workers %.1f MiB (private memory)\n",
        memory.verdicts, memory.supervisor / 1048576.0, memory.workers / 1048576.0);
  }
  absl::StrAppendFormat(
      &text,
      "%d verdicts in %.0f s, %.2f a second (first worker after %.1f s); workers started %d, lost "
      "%d\n",
      report.done, report.seconds, Rate(report), report.start_seconds,
      report.counts.workers_started, report.counts.workers_lost);
  if (report.done < report.planned) {
    absl::StrAppendFormat(&text, "%d of %d were begun in the time; ended by its end: %s\n",
                          report.done, report.planned, Counts(report.unfinished));
  }
  for (const std::string& wrong : report.wrong) absl::StrAppend(&text, "WRONG ", wrong, "\n");
  for (const std::string& left : report.left) absl::StrAppend(&text, "LEFT ", left, "\n");
  return absl::StrCat(text, "wrong or lost verdicts: ", report.wrong.size(),
                      "; left behind: ", report.left.size(), "; memory ",
                      report.MemoryIsFlat() ? "flat" : "GROWS", "\n");
}

std::string SoakReportJson(const SoakReport& report) {
  Json json = {{"planned", report.planned},
               {"verdicts", report.done},
               {"seconds", report.seconds},
               {"per_second", Rate(report)},
               {"start_seconds", report.start_seconds},
               {"wrong", report.wrong},
               {"left", report.left},
               {"memory_flat", report.MemoryIsFlat()},
               {"workers_started", report.counts.workers_started},
               {"workers_lost", report.counts.workers_lost},
               {"sandbox", report.sandbox},
               {"unfinished", report.unfinished},
               {"outcomes", report.outcomes}};
  json["kinds"] = Json::object();
  for (const auto& [kind, figures] : report.kinds) {
    json["kinds"][kind] = {{"count", figures.count},
                           {"mean_seconds", figures.seconds / std::max(figures.count, 1)},
                           {"longest_seconds", figures.longest}};
  }
  json["memory"] = Json::array();
  for (const SoakMemory& memory : report.memory) {
    json["memory"].push_back({{"verdicts", memory.verdicts},
                              {"supervisor_bytes", memory.supervisor},
                              {"workers_bytes", memory.workers}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

constexpr absl::Duration kMaxDuration = absl::Minutes(5);  // of one candidate, queue included
constexpr absl::Duration kFinish = absl::Seconds(10);      // for candidates that run at the end

absl::StatusOr<std::unique_ptr<LocalBackend>> StartBackend(const SoakOptions& options) {
  WorkerPoolOptions pool;
  pool.workers = options.workers;
  // Small, so that a candidate that fills its memory reaches the limit before its time limit, even
  // on a host that allocates pages slowly. A CUDA context needs a part of it.
  pool.limits.set_memory_bytes(options.backend == "cuda" ? int64_t{2} << 30 : 512 << 20);
  ASSIGN_OR_RETURN(pool.sandbox, ParseSandboxKind(options.sandbox));
  if (options.backend == "cuda") return StartCudaBackend(std::move(pool));
  return StartNativeBackend(std::move(pool));
}

// Whether the end of the soak, rather than the candidate, can be the cause of this outcome.
bool EndedByDeadline(const absl::StatusOr<ExecResult>& result) {
  if (!result.ok()) return false;
  switch (result->outcome().reason()) {
    case Outcome::DEADLINE:
    case Outcome::TIMEOUT:
    case Outcome::REFERENCE_FAILED:
    case Outcome::WORKER_LOST:
      return true;
    default:
      return false;
  }
}

class Soak {
 public:
  explicit Soak(const SoakOptions& options) : options_(options) {}

  absl::StatusOr<SoakReport> Run() {
    LeakCheck leftovers;
    const absl::Time begin = absl::Now();
    ASSIGN_OR_RETURN(backend_, StartBackend(options_));
    report_.start_seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    leftovers.NotePool();
    report_.sandbox = backend_->sandbox_description();
    MakePlan();
    RETURN_IF_ERROR(WarmUp());
    start_ = absl::Now();
    if (options_.seconds > 0) end_ = start_ + absl::Seconds(options_.seconds);
    std::thread teller([this] {
      while (!ended_.WaitForNotificationWithTimeout(options_.tell_every)) options_.tell(State());
    });
    // Memory is measured while no job runs: after a tenth, after half, at the end.
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
    plan.fill_memory = absl::StrContains(report_.sandbox, "memory");
    plan.extra_seconds = options_.extra_seconds;
    plan_ = PlanSoak(plan);
  }

  ExecRequest RequestFor(const SoakCase& soak) const {
    ExecRequest request;
    request.set_task_id(absl::StrCat(soak.id));
    request.set_reference_source(kSoftmaxReference);
    request.set_candidate_source(soak.source);
    request.set_trials(1);
    request.set_skip_timing(!options_.timing);
    request.mutable_limits()->set_wall_seconds(soak.wall_seconds);
    return request;
  }

  // On a cold host the first jobs of all workers take long, but the limits of the plan are for warm
  // workers.
  absl::Status WarmUp() {
    std::vector<absl::Status> status(options_.workers);
    std::vector<std::thread> callers;
    for (int i = 0; i < options_.workers; ++i) {
      callers.emplace_back([this, i, &status] {
        SoakCase soak;
        soak.source = kSoftmaxCandidate;
        ExecRequest request = RequestFor(soak);
        request.set_seed(i + 1);  // a different seed, so that each one runs the reference
        const auto result = backend_->Run(request, absl::Now() + kMaxDuration);
        status[i] = result.status();
        if (result.ok() && result->outcome().reason() != Outcome::OK) {
          status[i] = absl::InternalError(absl::StrCat(
              "an honest candidate before the soak: ", ReasonName(result->outcome().reason()), ": ",
              result->outcome().message()));
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    for (const absl::Status& one : status) RETURN_IF_ERROR(one);
    warm_jobs_ = backend_->pool().counts().jobs;
    return absl::OkStatus();
  }

  void RunUntil(int end) {
    // One more caller than workers, so that a job always waits in the queue.
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
    const absl::Time begin = absl::Now(), deadline = std::min(begin + kMaxDuration, end_ + kFinish);
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
    if (result.ok()) ++report_.outcomes[ReasonName(result->outcome().reason())];
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
    // After the end of the soak no verdict comes, so a second measurement would be a duplicate.
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
  std::unique_ptr<LocalBackend> backend_;
  std::atomic<int> next_{0};
  int64_t warm_jobs_ = 0;
  absl::Time start_, end_ = absl::InfiniteFuture();
  absl::Notification ended_;
  absl::Mutex mutex_;
  std::map<std::string, int> running_ ABSL_GUARDED_BY(mutex_);
  SoakReport report_;  // mutex_ guards the members that RunOne writes
};

}  // namespace

absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options) { return Soak(options).Run(); }

}  // namespace tritonrl
