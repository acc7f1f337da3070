#include "verify/preflight/preflight.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/jsonl.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "nlohmann/json.hpp"
#include "verify/pipeline/progress_recorder.h"

namespace tritonrl {

namespace {

using Json = nlohmann::ordered_json;

ExecRequest RequestFor(const Task& task, const PreflightOptions& options) {
  ExecRequest request;
  request.set_task_id(task.id);
  request.set_reference_source(task.source);
  request.set_seed(options.seed);
  request.set_trials(options.trials);
  request.set_atol(options.atol);
  request.set_rtol(options.rtol);
  request.set_device_model(options.device_model);
  request.set_rules(options.rules);
  request.set_reference_only(true);
  request.set_probe_task(true);
  request.set_skip_timing(true);
  request.mutable_limits()->set_wall_seconds(absl::ToDoubleSeconds(options.run_limit));
  return request;
}

void Conclude(const absl::StatusOr<ExecResult>& result, TaskCheck* check) {
  if (!result.ok()) {
    check->reason = Message(result.status());
    return;
  }
  if (result->outcome().reason() != Outcome::OK) {
    const bool broken = result->outcome().status() == Outcome::STATUS_TASK_FAILED;
    if (broken) check->state = TaskState::kBroken;
    check->reason = MessageOf(result->outcome());
    return;
  }
  check->probes.assign(result->probes().begin(), result->probes().end());
  if (check->probes.empty()) {
    check->reason = "the backend does not answer probes; are its servers of another version?";
    return;
  }
  std::vector<std::string> passed;
  for (const TaskProbe& probe : check->probes) {
    if (probe.passes()) passed.push_back(absl::StrCat(probe.name(), " passes: ", probe.text()));
  }
  check->state = passed.empty() ? TaskState::kSound : TaskState::kUnsound;
  check->reason = absl::StrJoin(passed, "; ");
}

TaskCheck CheckOne(const Task& task, DeviceBackend* backend, const PreflightOptions& options) {
  TaskCheck check;
  check.task = task.id;
  if (options.stop()) {
    check.reason = "stopped before its turn";
    return check;
  }
  const absl::Time begin = absl::Now();
  Conclude(backend->Run(RequestFor(task, options), begin + options.wait_limit), &check);
  check.seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  return check;
}

}  // namespace

std::string TaskStateName(TaskState state) {
  switch (state) {
    case TaskState::kSound:
      return "sound";
    case TaskState::kUnsound:
      return "unsound";
    case TaskState::kBroken:
      return "broken";
    case TaskState::kNotChecked:
      return "not_checked";
  }
  return "";
}

PreflightOptions PreflightOptionsFrom(const VerifierOptions& options) {
  PreflightOptions preflight;
  preflight.rules = options.rules;
  preflight.seed = options.seed;
  preflight.trials = options.trials;
  preflight.atol = options.atol;
  preflight.rtol = options.rtol;
  preflight.device_model = options.device_model;
  preflight.run_limit = options.run_limit;
  preflight.parallel = options.parallel;
  return preflight;
}

std::vector<TaskCheck> CheckTasks(const std::vector<Task>& tasks, DeviceBackend* backend,
                                  const PreflightOptions& options) {
  std::vector<TaskCheck> checks(tasks.size());
  absl::Mutex mutex;
  ParallelForUntil(tasks.size(), options.parallel, [&](size_t i) {
    checks[i] = CheckOne(tasks[i], backend, options);
    absl::MutexLock lock(&mutex);
    options.done(checks[i]);
    return true;  // after a stop, CheckOne marks the remaining tasks as not checked
  });
  return checks;
}

std::string TaskCheckJson(const TaskCheck& check, Rules rules) {
  Json json = {{"task", check.task},
               {"state", TaskStateName(check.state)},
               {"rules", RulesName(rules)},
               {"reason", check.reason},
               {"seconds", check.seconds}};
  json["probes"] = Json::array();
  for (const TaskProbe& probe : check.probes) {
    Json piece = {{"name", probe.name()}, {"applies", probe.applies()}, {"passes", probe.passes()}};
    if (probe.passes()) piece["max_error"] = probe.max_error();
    piece["text"] = probe.text();
    json["probes"].push_back(piece);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

constexpr int kMaxNameColumns = 44;

std::string TotalsText(const PreflightTotals& totals) {
  std::string text = absl::StrCat(totals.sound, " sound, ", totals.unsound, " unsound");
  if (totals.broken > 0) absl::StrAppend(&text, ", ", totals.broken, " broken");
  if (totals.not_checked > 0) absl::StrAppend(&text, ", ", totals.not_checked, " not checked");
  return text;
}

}  // namespace

PreflightTotals Count(const std::vector<TaskCheck>& checks) {
  PreflightTotals totals;
  for (const TaskCheck& check : checks) {
    switch (check.state) {
      case TaskState::kSound:
        ++totals.sound;
        break;
      case TaskState::kUnsound:
        ++totals.unsound;
        break;
      case TaskState::kBroken:
        ++totals.broken;
        break;
      case TaskState::kNotChecked:
        ++totals.not_checked;
        break;
    }
  }
  return totals;
}

namespace {

// Decides whether it makes sense to check further tasks (PreflightOptions::give_up).
class Patience {
 public:
  Patience(size_t tasks, const PreflightOptions& options)
      : tasks_(tasks),
        give_up_(options.give_up),
        enough_(std::min<size_t>(tasks, std::max(kMinFailures, 2 * options.parallel))),
        last_(absl::Now()) {}

  // Called by one thread at a time.
  void Note(const TaskCheck& check) {
    if (ended_) return;
    if (check.state != TaskState::kNotChecked) {
      ++checked_;
      failed_ = 0;
      last_ = absl::Now();
      return;
    }
    ++failed_;
    if (give_up_ == absl::InfiniteDuration()) return;
    const bool stalled = absl::Now() - last_ >= give_up_;
    if (!stalled && (checked_ > 0 || failed_ < enough_)) return;
    reason_ = check.reason;
    ended_ = true;
  }

  bool ended() const { return ended_; }

  absl::Status status() const {
    if (!ended_) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "the preflight of ", tasks_, tasks_ == 1 ? " task" : " tasks", " gave up after ", checked_,
        ", because the last ", failed_, " could not be checked: ", reason_,
        "; start a verification server of the role check or both, or do without the preflight"));
  }

 private:
  static constexpr int kMinFailures = 8;

  const size_t tasks_;
  const absl::Duration give_up_;
  const size_t enough_;  // failures without any check that say enough
  absl::Time last_;      // when a task was last checked
  size_t checked_ = 0;
  size_t failed_ = 0;  // since the last one that was checked
  std::string reason_;
  std::atomic<bool> ended_ = false;
};

}  // namespace

absl::StatusOr<std::vector<TaskCheck>> RunPreflight(const std::vector<Task>& tasks,
                                                    DeviceBackend* backend,
                                                    const PreflightOptions& options,
                                                    const std::string& out, std::FILE* messages) {
  std::unique_ptr<JsonlJournal> file;
  if (!out.empty()) {
    ASSIGN_OR_RETURN(file, JsonlJournal::Create(out));
  }
  ProgressRecorder recorder(
      {.label = "preflight", .total = static_cast<int64_t>(tasks.size()), .out = messages},
      std::move(file));
  absl::Status written;
  std::vector<TaskCheck> so_far;
  PreflightOptions watched = options;
  watched.wait_limit = std::min(options.wait_limit, options.give_up);
  Patience patience(tasks.size(), options);
  watched.stop = [&] { return options.stop() || patience.ended(); };
  watched.done = [&](const TaskCheck& check) {
    so_far.push_back(check);
    patience.Note(check);
    written.Update(recorder.Keep(TaskCheckJson(check, options.rules)));
    recorder.Show(TotalsText(Count(so_far)));
    options.done(check);
  };
  std::vector<TaskCheck> checks = CheckTasks(tasks, backend, watched);
  recorder.Finish(TotalsText(Count(so_far)));
  RETURN_IF_ERROR(written);
  RETURN_IF_ERROR(patience.status());
  return checks;
}

std::string PreflightTable(const std::vector<TaskCheck>& checks, Rules rules) {
  size_t columns = 4;
  for (const TaskCheck& check : checks) {
    if (check.state != TaskState::kSound) columns = std::max(columns, check.task.size());
  }
  const int width = static_cast<int>(std::min<size_t>(columns, kMaxNameColumns));
  std::string text;
  for (const TaskCheck& check : checks) {
    if (check.state == TaskState::kSound) continue;
    absl::StrAppendFormat(&text, "  %-11s  %-*s  %s\n", TaskStateName(check.state), width,
                          check.task, check.reason);
  }
  absl::StrAppend(&text, checks.size(), checks.size() == 1 ? " task" : " tasks", " by the ",
                  RulesName(rules), " rules: ", TotalsText(Count(checks)), "\n");
  return text;
}

}  // namespace tritonrl
