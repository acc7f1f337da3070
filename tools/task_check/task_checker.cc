#include "tools/task_check/task_checker.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/utf8.h"
#include "exec/sandbox/sandbox.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

// A task waits for a worker that runs another one, or that starts anew after a crash.
constexpr absl::Duration kQueueTime = absl::Minutes(5);
constexpr size_t kMaxMessage = 400;
constexpr size_t kMaxInputs = 256, kMaxInputText = 500;
constexpr int kAttempts = 2;  // runs of a task whose worker is lost
constexpr char kProgram[] = "tools/task_check/python/check_task.py";
constexpr absl::string_view kReasons[] = {
    "ok",         "load_error",     "construct_error",  "input_error",
    "run_error",  "needs_gradient", "no_tensor_output", "unsupported_values",
    "not_finite", "random_result",  "constant_result",  "out_of_memory",
};

// Reads the member "inputs" of a result; false if it has another form.
bool ParseInputs(const Json& result, std::vector<std::string>* inputs) {
  const auto found = result.find("inputs");
  if (found == result.end() || !found->is_array() || found->size() > kMaxInputs) return false;
  for (const Json& input : *found) {
    if (!input.is_string()) return false;
    std::string text = input.get<std::string>();
    if (text.size() > kMaxInputText) return false;
    inputs->push_back(RepairUtf8(text));
  }
  return true;
}

// Reads the last line of the result channel. The task may have written to it: nullopt unless the
// line has the form of a result.
std::optional<TaskFinding> ParseResult(absl::string_view channel) {
  const std::vector<absl::string_view> lines = absl::StrSplit(channel, '\n', absl::SkipEmpty());
  if (lines.size() != 1) return std::nullopt;
  const Json json = Json::parse(lines[0], nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.size() != 1 || !json.contains("result")) return std::nullopt;
  const Json& result = json["result"];
  if (!result.is_object() || result.size() != 3) return std::nullopt;
  for (const char* name : {"reason", "message"}) {
    if (!result.contains(name) || !result[name].is_string()) return std::nullopt;
  }
  TaskFinding finding{result["reason"].get<std::string>(), result["message"].get<std::string>()};
  if (!ParseInputs(result, &finding.inputs)) return std::nullopt;
  if (std::find(std::begin(kReasons), std::end(kReasons), finding.reason) == std::end(kReasons)) {
    return std::nullopt;
  }
  if (finding.message.size() > kMaxMessage) finding.message.resize(kMaxMessage);
  finding.message = RepairUtf8(finding.message);
  return finding;
}

TaskFinding FindingOfExit(const JobReport& report) {
  if (report.out_of_memory) return {"out_of_memory", "its process was ended for lack of memory"};
  if (report.signal != 0) {
    return {"crashed", absl::StrCat("its process was ended by signal ", report.signal)};
  }
  if (report.exit_code != 0) {
    return {"crashed", absl::StrCat("its process ended with exit code ", report.exit_code)};
  }
  if (report.channel.empty()) return {"crashed", "its process ended without a result"};
  std::optional<TaskFinding> finding = ParseResult(report.channel);
  if (!finding.has_value()) return {"bad_result", "it wrote into the result channel"};
  return *std::move(finding);
}

std::string JobText(const std::string& source, bool inputs_only) {
  const Json job = {{"source", source}, {"seeds", {1, 2}}, {"inputs_only", inputs_only}};
  return job.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskChecker>> TaskChecker::Start(const TaskCheckerOptions& options) {
  ASSIGN_OR_RETURN(const std::string program, Runfile(kProgram));
  WorkerPoolOptions pool;
  pool.workers = options.workers;
  ASSIGN_OR_RETURN(pool.sandbox, ParseSandboxKind(options.sandbox));
  pool.runner = "check_task";
  // References are loaded as those of verdicts.
  ASSIGN_OR_RETURN(const std::string oracle, Runfile("exec/python/oracle_worker.py"));
  pool.extra_python_dirs = {DirName(program), DirName(oracle)};
  pool.limits.set_wall_seconds(options.wall_seconds);
  // The time limit is to end a task, not the limit of processor time, whose default is one minute.
  pool.limits.set_cpu_seconds(std::max(60.0, 4 * options.wall_seconds));
  pool.limits.set_memory_bytes(options.memory_bytes);
  std::unique_ptr<TaskChecker> checker(new TaskChecker());
  ASSIGN_OR_RETURN(checker->pool_, WorkerPool::Start(pool));
  checker->limits_ = checker->pool_->limits();
  return checker;
}

absl::StatusOr<std::string> TaskChecker::Version(const TaskCheckerOptions& options) {
  ASSIGN_OR_RETURN(const std::string program, Runfile(kProgram));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(program));
  return Sha256Hex(absl::StrCat(text, options.wall_seconds, " ", options.memory_bytes));
}

absl::StatusOr<TaskFinding> TaskChecker::Run(const std::string& source) {
  return RunJob(JobText(source, /*inputs_only=*/false));
}

absl::StatusOr<TaskFinding> TaskChecker::RunInputs(const std::string& source) {
  return RunJob(JobText(source, /*inputs_only=*/true));
}

absl::StatusOr<TaskFinding> TaskChecker::RunJob(const std::string& job) {
  absl::StatusOr<TaskFinding> finding = RunOnce(job);
  for (int attempt = 1; attempt < kAttempts && !finding.ok(); ++attempt) finding = RunOnce(job);
  return finding;
}

absl::StatusOr<TaskFinding> TaskChecker::RunOnce(const std::string& job) {
  const absl::Time deadline = absl::Now() + kQueueTime + absl::Seconds(limits_.wall_seconds());
  const JobReport report = pool_->Run(job, limits_, deadline);
  switch (report.end) {
    case JobEnd::kExit:
      return FindingOfExit(report);
    case JobEnd::kTimeout:
      return TaskFinding{"timeout",
                         absl::StrFormat("it ran longer than %g s", limits_.wall_seconds())};
    case JobEnd::kOutputLimit:
      return TaskFinding{"output_limit",
                         absl::StrCat("it printed more than ", limits_.output_bytes(), " bytes")};
    case JobEnd::kProcessLimit:
      return TaskFinding{"process_limit",
                         absl::StrCat("it had more than ", limits_.processes(), " processes")};
    case JobEnd::kChannelLimit:
      return TaskFinding{"bad_result", "it wrote into the result channel"};
    default:
      if (report.out_of_memory) {
        return TaskFinding{"out_of_memory", "its process was ended for lack of memory"};
      }
      return absl::UnavailableError(absl::StrCat("its worker was lost: ", report.detail));
  }
}

}  // namespace tritonrl
