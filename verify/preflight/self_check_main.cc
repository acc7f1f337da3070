// Runs each reference as its own candidate:
//   bazel run //verify/preflight:self_check -- --tasks=DIR --out=self.jsonl
// If one is not correct, or its speedup is not 1, the verifier or the task has a fault.
//
// --timing=false measures the machine's verdicts per second. Exit codes: 0 the check ran, with any
// results; 2 a mistake in the command line, or an error of the file or of a run; 3 no backend can
// be started on this machine.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "exec/backend/backend_factory.h"
#include "tasks/loader.h"
#include "verify/preflight/self_check.h"

ABSL_FLAG(std::string, tasks, "", "folder with references (or one file), in KernelBench's format");
ABSL_FLAG(std::string, only, "", "ids to take, divided by commas; empty: all");
ABSL_FLAG(std::string, out, "", "JSONL file, a line for each task; goes on where it stopped");
ABSL_FLAG(std::string, backend, "auto", "auto, native or cuda");
ABSL_FLAG(std::string, sandbox, "bubblewrap", "bubblewrap, or none");
ABSL_FLAG(int, workers, 0, "tasks checked at the same time; 0: the backend's default");
ABSL_FLAG(bool, timing, true, "false: correctness only");
ABSL_FLAG(int, trials, 5, "random inputs");
ABSL_FLAG(uint64_t, seed, 0, "keys weights and random inputs");
ABSL_FLAG(double, time_limit, 0, "seconds for one process of a task; 0: the backend's own");
ABSL_FLAG(double, seconds, 0, "begin no more tasks after so many seconds; 0: no end");

namespace tritonrl {
namespace {

constexpr int kUserError = 2, kCannotWork = 3;

int Complain(int code, const std::string& sentence) {
  std::fprintf(stderr, "self_check: %s\n", sentence.c_str());
  return code;
}

absl::StatusOr<std::vector<Task>> ChosenTasks() {
  if (absl::GetFlag(FLAGS_tasks).empty()) {
    return absl::InvalidArgumentError("--tasks is missing: a folder with references");
  }
  ASSIGN_OR_RETURN(TaskSet set, LoadTasks(UserPath(absl::GetFlag(FLAGS_tasks))));
  for (const std::string& problem : set.problems) {
    std::fprintf(stderr, "self_check: left out: %s\n", problem.c_str());
  }
  if (absl::GetFlag(FLAGS_only).empty()) return std::move(set.tasks);
  std::vector<Task> chosen;
  for (const absl::string_view id : absl::StrSplit(absl::GetFlag(FLAGS_only), ',')) {
    const size_t before = chosen.size();
    for (const Task& task : set.tasks) {
      if (task.id == std::string(id)) chosen.push_back(task);
    }
    if (chosen.size() == before) {
      return absl::InvalidArgumentError(absl::StrCat("--only: there is no task ", id));
    }
  }
  return chosen;
}

absl::StatusOr<std::unique_ptr<DeviceBackend>> StartBackend() {
  BackendOptions options;
  ASSIGN_OR_RETURN(options.kind, ParseBackendKind(absl::GetFlag(FLAGS_backend)));
  options.workers = absl::GetFlag(FLAGS_workers);
  options.sandbox = absl::GetFlag(FLAGS_sandbox);
  if (absl::GetFlag(FLAGS_time_limit) > 0) {
    options.pool.limits.set_wall_seconds(absl::GetFlag(FLAGS_time_limit));
  }
  return MakeBackend(options);
}

int Main() {
  const auto tasks = ChosenTasks();
  if (!tasks.ok()) return Complain(kUserError, Message(tasks.status()));
  const SignalHandler interrupts;
  auto backend = StartBackend();
  if (!backend.ok()) {
    return Complain(absl::IsInvalidArgument(backend.status()) ? kUserError : kCannotWork,
                    Message(backend.status()));
  }
  const double seconds = absl::GetFlag(FLAGS_seconds);
  const absl::Time end =
      seconds > 0 ? absl::Now() + absl::Seconds(seconds) : absl::InfiniteFuture();
  SelfCheckOptions options;
  options.out = absl::GetFlag(FLAGS_out).empty() ? "" : UserPath(absl::GetFlag(FLAGS_out));
  options.seed = absl::GetFlag(FLAGS_seed);
  options.trials = absl::GetFlag(FLAGS_trials);
  options.parallel = (*backend)->concurrency();
  options.measure_time = absl::GetFlag(FLAGS_timing);
  options.stop = [&] { return interrupts.received() != 0 || absl::Now() > end; };
  const auto summary = RunSelfCheck(*tasks, options, backend->get());
  if (!summary.ok()) return Complain(kUserError, Message(summary.status()));
  std::fputs(SelfCheckText(*summary).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Checks references against themselves.", argc, argv);
  return tritonrl::Main();
}
