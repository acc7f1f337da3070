#include "verify/preflight.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "nlohmann/json.hpp"
#include "verify/exec_mode.h"
#include "verify/work_list.h"

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
  request.set_mode(options.mode);
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
  if (result->outcome() != EXEC_OK) {
    if (FaultOf(result->outcome()) == EXEC_FAULT_TASK) check->state = TaskState::kBroken;
    check->reason = result->message().empty() ? OutcomeName(result->outcome()) : result->message();
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

PreflightOptions PreflightLike(const VerifierOptions& options) {
  PreflightOptions preflight;
  preflight.mode = options.mode;
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
  WorkThrough(tasks.size(), options.parallel, [&](size_t i) {
    checks[i] = CheckOne(tasks[i], backend, options);
    absl::MutexLock lock(&mutex);
    options.done(checks[i]);
    return true;  // those that are left are told as not checked
  });
  return checks;
}

std::string TaskCheckJson(const TaskCheck& check, ExecMode mode) {
  Json json = {{"task", check.task},
               {"state", TaskStateName(check.state)},
               {"mode", ExecModeName(mode)},
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

}  // namespace tritonrl
