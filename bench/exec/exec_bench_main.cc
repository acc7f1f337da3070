// bazel run //exec:bench: verdict jobs per second of a warm pool beside a fresh Python process for
// each candidate, on the same honest softmax, in one run.
#include <stdio.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/run_request.h"

ABSL_FLAG(int, workers, 0, "processes at once; 0: the number of cores");
ABSL_FLAG(int, warm_jobs, 60, "jobs for the warm pool");
ABSL_FLAG(int, fresh_jobs, 6, "jobs with a fresh process each");

namespace tritonrl {
namespace {

// Does a job and says what came out; called from several threads.
using DoJob = std::function<absl::Status()>;

// Seconds for `jobs` jobs, `parallel` at once.
absl::StatusOr<double> Time(int jobs, int parallel, const DoJob& job) {
  std::atomic<int> next{0};
  std::vector<absl::Status> errors(parallel);
  const absl::Time start = absl::Now();
  std::vector<std::thread> threads;
  for (int t = 0; t < parallel; ++t) {
    threads.emplace_back([&, t] {
      while (next++ < jobs && errors[t].ok()) errors[t] = job();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& error : errors) RETURN_IF_ERROR(error);
  return absl::ToDoubleSeconds(absl::Now() - start);
}

ExecRequest Request() {
  ExecRequest request;
  request.set_task_id("softmax");
  request.set_reference_source(kSoftmaxReference);
  request.set_candidate_source(kSoftmaxCandidate);
  return request;
}

// `prefix` makes the task another one.
absl::Status RunWarm(DeviceBackend* backend, const std::string& prefix = "") {
  ExecRequest request = Request();
  request.set_reference_source(absl::StrCat(prefix, kSoftmaxReference));
  ASSIGN_OR_RETURN(ExecResult result, backend->Run(request, absl::Now() + absl::Minutes(2)));
  if (result.outcome().reason() == Outcome::OK) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the honest job failed: ", result.outcome().message()));
}

// What one would do without a pool: a Python process that imports everything and runs one job,
// not confined at all.
absl::Status RunFresh(const PythonEnv& env, const std::string& sources, const std::string& job) {
  RunCommandOptions options;
  options.timeout = absl::Minutes(2);
  options.input = job;
  options.env = env.Environment({sources});
  options.env.emplace_back("OMP_NUM_THREADS", "1");
  ASSIGN_OR_RETURN(CommandResult result,
                   RunCommand({env.interpreter, "-c",
                               "import json, sys, one_process\n"
                               "both = one_process.run_both(*json.load(sys.stdin))\n"
                               "print(both.results[-1]['outcome'])"},
                              options));
  if (result.ok() && result.out == "ran\n") return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the fresh job failed: ", result.out, result.err));
}

absl::Status Main() {
  int workers = absl::GetFlag(FLAGS_workers);
  if (workers <= 0) workers = std::max(1u, std::thread::hardware_concurrency());
  const int warm_jobs = absl::GetFlag(FLAGS_warm_jobs);
  const int fresh_jobs = absl::GetFlag(FLAGS_fresh_jobs);

  WorkerPoolOptions options;
  options.workers = workers;
  absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(auto backend, StartInterpreterBackend(options));
  const double start_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  RETURN_IF_ERROR(Time(2 * workers, workers, [&] { return RunWarm(backend.get()); }).status());
  ASSIGN_OR_RETURN(double warm, Time(warm_jobs, workers, [&] { return RunWarm(backend.get()); }));
  printf("%d at once, softmax of 64 x 200, 5 trials, sandbox: %s\n", workers,
         backend->sandbox_description().c_str());
  printf("warm pool              %6.2f jobs/s (%d jobs; first worker ready after %.1f s)\n",
         warm_jobs / warm, warm_jobs, start_seconds);
  std::atomic<int> task{0};
  ASSIGN_OR_RETURN(double all, Time(warm_jobs, workers, [&] {
                     return RunWarm(backend.get(), absl::StrCat("# task ", task++, "\n"));
                   }));
  printf("each another task      %6.2f jobs/s (the reference runs for each)\n", warm_jobs / all);
  backend.reset();

  ASSIGN_OR_RETURN(PythonEnv env, FindPythonEnv());
  ASSIGN_OR_RETURN(std::string worker, Runfile("exec/python/worker.py"));
  const std::string job = nlohmann::json{kSoftmaxReference, kSoftmaxCandidate}.dump();
  ASSIGN_OR_RETURN(double fresh,
                   Time(fresh_jobs, workers, [&] { return RunFresh(env, DirName(worker), job); }));
  printf("fresh process each     %6.2f jobs/s (%d jobs, not confined)\n", fresh_jobs / fresh,
         fresh_jobs);
  printf("warm / fresh           %6.1f x\n", (warm_jobs / warm) / (fresh_jobs / fresh));
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Jobs per second of the warm pool and of fresh processes.", argc, argv);
  const absl::Status status = tritonrl::Main();
  if (!status.ok()) fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
