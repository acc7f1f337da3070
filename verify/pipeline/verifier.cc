#include "verify/pipeline/verifier.h"

#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "tasks/response.h"
#include "verify/judge/judge.h"
#include "verify/pipeline/layers.h"
#include "verify/verdict/verdict.h"
#include "verify/verdict/verdict_cache.h"

namespace tritonrl {
namespace {

// Must be increased when the meaning of a stored verdict changes, so that verdicts of old journals
// are not used.
constexpr int kVerdictVersion = 5;

}  // namespace

class Verifier::Impl {
 public:
  Impl(const VerifierOptions& options, DeviceBackend* backend, Judge* judge)
      : options_(options),
        backend_(backend),
        judge_(judge),
        cache_(options.cache ? options.journal : "") {
    settings_ = absl::StrCat(
        "v", kVerdictVersion, " ", backend_->name(), " ", options_.device_model, " seed ",
        options_.seed, " trials ", options_.trials, " tol ", options_.atol, " ", options_.rtol,
        " time ", options_.measure_time, " func ", options_.check_functionality, " ablation ",
        options_.ablation, " limit ", absl::FormatDuration(options_.run_limit), " judge ",
        judge_ == nullptr ? "off" : judge_->name(),
        // Not added for RULES_STRICT, so that older journals stay valid.
        options_.rules == RULES_ROBUST  ? " mode robust"
        : options_.rules == RULES_PAPER ? " rules paper"
                                        : "");
    if (judge_ != nullptr) {
      judge_queue_ =
          std::make_unique<JudgeQueue>(judge_, options_.judge_parallel, options_.judge_cache);
    }
    for (int i = 0; i < std::max(1, options_.parallel); ++i)
      threads_.emplace_back([this] { Work(); });
  }

  ~Impl() {
    Close();
    for (std::thread& thread : threads_) thread.join();
    judge_queue_.reset();  // its last answers call Complete, which uses the other members
  }

  void Close() {
    std::deque<Job> dropped;
    {
      absl::MutexLock lock(&mutex_);
      closed_ = true;
      dropped.swap(queue_);
    }
    for (const Job& job : dropped) Cancel(job);
    if (judge_queue_ != nullptr) judge_queue_->Close();
  }

  const std::string& settings() const { return settings_; }

  absl::Status Open() {
    ASSIGN_OR_RETURN(int64_t replayed, cache_.Open());
    if (judge_queue_ != nullptr) RETURN_IF_ERROR(judge_queue_->Open().status());
    absl::MutexLock lock(&mutex_);
    counts_.replayed = replayed;
    return absl::OkStatus();
  }

  void Submit(VerifyRequest request, std::function<void(Verdict)> done) {
    std::optional<SplitResponse> split;
    if (!request.response.empty()) {
      split = ReadResponse(request.response, request.style, request.truncated);
      request.code = split->code;
    }
    std::string hash = Hash(request, split);
    std::string key = request.key;
    std::optional<Verdict> known = options_.cache ? cache_.Find(hash) : std::nullopt;
    if (known.has_value()) {
      {
        absl::MutexLock lock(&mutex_);
        ++counts_.submitted;
        ++counts_.cache_hits;
        ++counts_.finished;
      }
      known->set_key(key);
      done(*std::move(known));
      return;
    }
    Job job{.hash = std::move(hash), .request = std::move(request), .split = std::move(split)};
    {
      absl::MutexLock lock(&mutex_);
      ++counts_.submitted;
      if (!options_.cache) job.hash = absl::StrCat(job.hash, "#", counts_.submitted);
      std::vector<Waiter>& waiters = waiting_[job.hash];
      waiters.push_back({std::move(key), std::move(done)});
      if (waiters.size() > 1) return;  // an equal request is in flight
      if (!closed_) {
        queue_.push_back(std::move(job));
        return;
      }
    }
    Cancel(job);
  }

  absl::Status JournalStatus() const {
    absl::MutexLock lock(&mutex_);
    if (!journal_status_.ok() || judge_queue_ == nullptr) return journal_status_;
    return judge_queue_->FileStatus();
  }

  absl::Status JudgeStatus() const {
    return judge_queue_ == nullptr ? absl::OkStatus() : judge_queue_->Health();
  }

  VerifierCounts counts() const {
    absl::MutexLock lock(&mutex_);
    return counts_;
  }

 private:
  struct Job {
    std::string hash;
    VerifyRequest request;
    std::optional<SplitResponse> split;
  };
  struct Waiter {
    std::string key;
    std::function<void(Verdict)> done;
  };

  std::string Hash(const VerifyRequest& request, const std::optional<SplitResponse>& split) const {
    const std::string shape =
        split.has_value() && !split->valid() ? std::string(ResponseShapeName(split->shape)) : "";
    return Sha256Hex(absl::StrCat(settings_, "\n", request.task.id, "\n",
                                  request.task.source.size(), "\n", request.task.source, "\n",
                                  shape, "\n", request.code));
  }

  void Cancel(const Job& job) {
    Verdict verdict = Start(job.request);
    if (options_.cache) verdict.set_content_hash(job.hash);
    SetOutcome(Outcome::CANCELLED, "the verifier was shut down before this candidate's turn",
               verdict.mutable_outcome());
    Finish(job.hash, verdict, /*store=*/false);
  }

  Verdict Start(const VerifyRequest& request) const {
    Verdict verdict;
    verdict.set_task_id(request.task.id);
    return verdict;
  }

  void Work() {
    while (true) {
      Job job;
      {
        absl::MutexLock lock(&mutex_);
        auto ready = [this] {
          mutex_.AssertHeld();
          return closed_ || !queue_.empty();
        };
        mutex_.Await(absl::Condition(&ready));
        if (queue_.empty()) return;
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      Verdict verdict = Walk(job);
      if (judge_queue_ != nullptr && !IsInfraError(verdict) && IsForTheJudge(verdict)) {
        AskJudge(job, std::move(verdict));
      } else {
        Complete(job.hash, std::move(verdict));
      }
    }
  }

  void Complete(const std::string& hash, Verdict verdict) {
    if (options_.cache) verdict.set_content_hash(hash);
    const bool store = options_.cache && !IsInfraError(verdict);
    Finish(hash, std::move(verdict), store);
  }

  // By the paper's rules the judge is a part of functionality. By ours it decides only where that
  // makes a difference to the reward.
  bool IsForTheJudge(const Verdict& verdict) const {
    return options_.rules == RULES_PAPER ? IsValid(verdict) : IsCorrect(verdict);
  }

  // By the paper's rules the run is asked who computes, and no more.
  RunAudit Audit() const {
    if (!options_.check_functionality) return RunAudit::kNone;
    return options_.rules == RULES_PAPER ? RunAudit::kLaunches : RunAudit::kAll;
  }

  // Walks all layers of one candidate except the judge, so that no thread here waits for the judge.
  Verdict Walk(const Job& job) {
    Verdict verdict = Start(job.request);
    if (job.split.has_value() && !job.split->valid()) {
      FailMalformedResponse(*job.split, &verdict);
      return verdict;
    }
    const absl::Time begin = absl::Now();
    const bool go_on = CheckSource(job.request.code, options_.check_functionality,
                                   options_.max_source_bytes, &verdict);
    verdict.set_seconds_lint(absl::ToDoubleSeconds(absl::Now() - begin));
    if (!go_on) return verdict;
    const Verdict before_run = verdict;
    for (int attempt = 1;; ++attempt) {
      verdict = before_run;
      const bool retry = RunOnce(job.request, &verdict);
      if (IsInfraError(verdict)) verdict.set_attempts(attempt);
      if (!retry || attempt >= options_.max_attempts || Closed()) break;
      absl::MutexLock lock(&mutex_);
      ++counts_.retries;
    }
    return verdict;
  }

  // Runs the candidate once at the backend. Returns true after an infrastructure error for which a
  // retry makes sense.
  bool RunOnce(const VerifyRequest& request, Verdict* verdict) {
    ExecRequest exec;
    exec.set_task_id(request.task.id);
    exec.set_reference_source(request.task.source);
    exec.set_candidate_source(request.code);
    exec.set_seed(options_.seed);
    exec.set_trials(options_.trials);
    exec.set_atol(options_.atol);
    exec.set_rtol(options_.rtol);
    exec.set_rules(options_.rules);
    exec.set_device_model(options_.device_model);
    exec.set_skip_timing(!options_.measure_time);
    exec.set_torch_may_compute(!options_.check_functionality);
    exec.set_skip_ablation(Audit() != RunAudit::kAll || !options_.ablation);
    exec.mutable_limits()->set_wall_seconds(absl::ToDoubleSeconds(options_.run_limit));
    verdict->set_backend(backend_->name());
    {
      absl::MutexLock lock(&mutex_);
      ++counts_.runs;
    }
    absl::StatusOr<ExecResult> result = backend_->Run(exec, absl::Now() + options_.wait_limit);
    if (!result.ok()) {
      SetOutcome(Outcome::INTERNAL_ERROR, Message(result.status()), verdict->mutable_outcome());
      return !absl::IsInvalidArgument(result.status());
    }
    SetWorkerStats(*result, verdict);
    ApplyExecResult(*result, Audit(), options_.measure_time, options_.trials, verdict);
    // A measured time may be inconclusive because other processes disturbed it, so a retry can
    // succeed; a modelled time would be the same again.
    const Outcome::Reason reason = verdict->outcome().reason();
    const bool doubtful_clock = reason == Outcome::INCONCLUSIVE && !result->modelled();
    return IsInfraError(*verdict) && (doubtful_clock || IsRetryable(reason));
  }

  void AskJudge(const Job& job, Verdict verdict) {
    judge_queue_->Ask(job.request.task.source, job.request.code,
                      [this, hash = job.hash,
                       verdict = std::move(verdict)](absl::StatusOr<JudgeOpinion> opinion) {
                        Verdict complete = verdict;
                        ApplyJudgeOpinion(opinion, &complete);
                        Complete(hash, std::move(complete));
                      });
  }

  // Passes the verdict to all requests that wait for it.
  void Finish(const std::string& hash, Verdict verdict, bool store) {
    Summarize(&verdict);
    absl::Status stored = store ? cache_.Add(verdict) : absl::OkStatus();
    std::vector<Waiter> waiters;
    {
      absl::MutexLock lock(&mutex_);
      if (!stored.ok() && journal_status_.ok()) journal_status_ = stored;
      auto it = waiting_.find(hash);
      if (it != waiting_.end()) {
        waiters = std::move(it->second);
        waiting_.erase(it);
      }
      counts_.finished += static_cast<int64_t>(waiters.size());
      counts_.cache_hits += static_cast<int64_t>(waiters.size()) - (waiters.empty() ? 0 : 1);
      if (IsInfraError(verdict)) counts_.infra_errors += static_cast<int64_t>(waiters.size());
      counts_.seconds_lint += verdict.seconds_lint();
      counts_.seconds_run += verdict.seconds_run();
    }
    bool first = true;
    for (Waiter& waiter : waiters) {
      Verdict own = verdict;
      own.set_key(waiter.key);
      own.set_from_cache(!first);
      first = false;
      waiter.done(std::move(own));
    }
  }

  bool Closed() const {
    absl::MutexLock lock(&mutex_);
    return closed_;
  }

  const VerifierOptions options_;
  DeviceBackend* const backend_;
  Judge* const judge_;
  std::unique_ptr<JudgeQueue> judge_queue_;
  std::string settings_;
  VerdictCache cache_;
  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Job> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<Waiter>> waiting_ ABSL_GUARDED_BY(mutex_);  // by content hash
  VerifierCounts counts_ ABSL_GUARDED_BY(mutex_);
  absl::Status journal_status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // declared last: the threads use all other members
};

Verifier::Verifier(const VerifierOptions& options, DeviceBackend* backend, Judge* judge)
    : impl_(std::make_unique<Impl>(options, backend, judge)) {}

Verifier::~Verifier() = default;

absl::Status Verifier::Open() { return impl_->Open(); }

std::future<Verdict> Verifier::Submit(VerifyRequest request) {
  auto promise = std::make_shared<std::promise<Verdict>>();
  std::future<Verdict> future = promise->get_future();
  Submit(std::move(request),
         [promise](Verdict verdict) { promise->set_value(std::move(verdict)); });
  return future;
}

void Verifier::Submit(VerifyRequest request, std::function<void(Verdict)> done) {
  impl_->Submit(std::move(request), std::move(done));
}

void Verifier::Close() { impl_->Close(); }

std::string Verifier::settings() const { return impl_->settings(); }

absl::Status Verifier::JournalStatus() const { return impl_->JournalStatus(); }

absl::Status Verifier::JudgeStatus() const { return impl_->JudgeStatus(); }

VerifierCounts Verifier::counts() const { return impl_->counts(); }

}  // namespace tritonrl
