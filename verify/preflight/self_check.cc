#include "verify/preflight/self_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/jsonl.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "verify/pipeline/progress_recorder.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kShown = 40;  // maximum number of tasks named in the report
constexpr int64_t kMaxLineBytes = 1 << 20;

bool OneInside(const ExecResult& result) {
  if (!result.has_speedup()) return false;
  if (!result.has_timing()) return std::abs(result.speedup() - 1) < 1e-9;
  return result.timing().speedup_low() <= 1 && 1 <= result.timing().speedup_high();
}

std::string EntryLine(const SelfCheckEntry& entry) {
  ExecResult result = entry.result;
  result.clear_launches();
  result.clear_candidate_ops();
  result.clear_reference_ops();
  const Json json = {{"id", entry.id},
                     {"interval_contains_one", entry.interval_contains_one},
                     {"result", Json::parse(MessageToJson(&result))}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The output file, and the ids of the tasks already in it.
struct Output {
  std::unique_ptr<JsonlJournal> file;  // null: no file
  std::set<std::string> ids;
};

absl::StatusOr<Output> OpenOutput(const std::string& out) {
  Output output;
  if (out.empty()) return output;
  ASSIGN_OR_RETURN(
      output.file,
      JsonlJournal::Open(out, kMaxLineBytes, [&](const Line& line) -> absl::StatusOr<bool> {
        const Json json = Json::parse(line.text, nullptr, /*allow_exceptions=*/false);
        if (!json.is_object() || !json.contains("id") || !json["id"].is_string() ||
            !json.contains("interval_contains_one")) {
          return absl::DataLossError(absl::StrCat(out, ", line ", line.number,
                                                  " is none of a self check; choose another file"));
        }
        output.ids.insert(json["id"].get<std::string>());
        return true;
      }));
  return output;
}

class SelfCheck {
 public:
  SelfCheck(std::vector<const Task*> tasks, const SelfCheckOptions& options,
            std::unique_ptr<JsonlJournal> file, DeviceBackend* backend)
      : tasks_(std::move(tasks)),
        options_(options),
        backend_(backend),
        recorder_({.label = "self check",
                   .total = static_cast<int64_t>(tasks_.size()),
                   .out = options.messages},
                  std::move(file)) {}

  absl::StatusOr<SelfCheckSummary> Run() {
    const absl::Time start = absl::Now();
    ParallelForUntil(tasks_.size(), options_.parallel,
                     [this](size_t i) { return RunOne(*tasks_[i]); });
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(status_);
    if (!summary_.entries.empty()) recorder_.Finish(Counts());
    summary_.seconds = absl::ToDoubleSeconds(absl::Now() - start);
    return std::move(summary_);
  }

 private:
  // Returns false if no further task may start.
  bool RunOne(const Task& task) {
    {
      absl::MutexLock lock(&mutex_);
      if (!status_.ok() || options_.stop()) return false;
    }
    ExecRequest request;
    request.set_task_id(task.id);
    request.set_reference_source(task.source);
    request.set_candidate_source(ReferenceAsCandidate(task.source));
    request.set_seed(options_.seed);
    request.set_trials(options_.trials);
    request.set_skip_timing(!options_.measure_time);
    const auto result = backend_->Run(request, absl::Now() + options_.wait_limit);
    absl::MutexLock lock(&mutex_);
    status_.Update(result.status());
    if (result.ok()) {
      Keep({.id = task.id, .result = *result, .interval_contains_one = OneInside(*result)});
    }
    return status_.ok();
  }

  void Keep(SelfCheckEntry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    status_.Update(recorder_.Keep(EntryLine(entry)));
    one_inside_ += entry.interval_contains_one;
    summary_.entries.push_back(std::move(entry));
    recorder_.Show(Counts());
  }

  std::string Counts() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return absl::StrCat("1 inside: ", one_inside_);
  }

  const std::vector<const Task*> tasks_;
  const SelfCheckOptions& options_;
  DeviceBackend* const backend_;
  absl::Mutex mutex_;
  int one_inside_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  SelfCheckSummary summary_ ABSL_GUARDED_BY(mutex_);
  ProgressRecorder recorder_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::string ReferenceAsCandidate(const std::string& reference_source) {
  return absl::StrCat(reference_source, "\n\nModelNew = Model\n");
}

absl::StatusOr<SelfCheckSummary> RunSelfCheck(const std::vector<Task>& tasks,
                                              const SelfCheckOptions& options,
                                              DeviceBackend* backend) {
  ASSIGN_OR_RETURN(Output output, OpenOutput(options.out));
  std::vector<const Task*> left;
  for (const Task& task : tasks) {
    if (output.ids.count(task.id) == 0) left.push_back(&task);
  }
  const auto already_done = static_cast<int64_t>(tasks.size() - left.size());
  ASSIGN_OR_RETURN(SelfCheckSummary summary,
                   SelfCheck(std::move(left), options, std::move(output.file), backend).Run());
  summary.already_done = already_done;
  return summary;
}

std::string SelfCheckText(const SelfCheckSummary& summary) {
  std::map<std::string, int> outcomes;
  std::map<std::string, std::pair<double, int>> phases;
  int timed = 0, inside = 0, shown = 0;
  std::string odd;
  for (const SelfCheckEntry& entry : summary.entries) {
    const ExecResult& r = entry.result;
    ++outcomes[ReasonName(r.outcome().reason())];
    timed += r.has_speedup();
    inside += entry.interval_contains_one;
    for (const auto& [phase, seconds] : r.phase_seconds()) {
      phases[phase].first += seconds;
      ++phases[phase].second;
    }
    const bool fine =
        r.outcome().reason() == Outcome::OK && (entry.interval_contains_one || !r.has_speedup());
    if (fine || shown++ >= kShown) continue;
    absl::StrAppend(&odd, "  ", entry.id, ": ", ReasonName(r.outcome().reason()));
    if (r.has_timing()) {
      absl::StrAppendFormat(&odd, ", %.4fx [%.4f, %.4f] of %d blocks, %.1f us", r.speedup(),
                            r.timing().speedup_low(), r.timing().speedup_high(),
                            r.timing().block_ratios_size(), 1e6 * r.reference_seconds());
    }
    absl::StrAppend(&odd, r.outcome().message().empty() ? "" : ", ", r.outcome().message(), "\n");
  }
  const auto tasks = static_cast<double>(summary.entries.size());
  std::string text =
      absl::StrFormat("%d tasks against themselves in %.1f s = %.2f/s (%d were there before)\n",
                      summary.entries.size(), summary.seconds,
                      tasks / std::max(summary.seconds, 1e-9), summary.already_done);
  for (const auto& [outcome, count] : outcomes) {
    absl::StrAppendFormat(&text, "  %-20s %d\n", outcome, count);
  }
  if (timed > 0) {
    absl::StrAppendFormat(&text, "  speedup 1.00 within its interval: %d of %d = %.1f %%\n", inside,
                          timed, 100.0 * inside / timed);
  }
  absl::StrAppend(&text, "  mean seconds by phase:");
  for (const auto& [phase, sum] : phases) {
    absl::StrAppendFormat(&text, " %s %.2f", phase, sum.first / sum.second);
  }
  return absl::StrCat(text, "\n", odd);
}

}  // namespace tritonrl
