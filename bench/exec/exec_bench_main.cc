// Jobs per second of a warm pool on an honest softmax.
#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/run_request.h"

ABSL_FLAG(int, workers, 0, "Processes at once; 0: the number of cores.");
ABSL_FLAG(int, warm_jobs, 60, "Jobs of a round of the warm pool.");

namespace tritonrl {
namespace {

// Runs one job and returns its error, if any. Called from several threads.
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

// A `prefix` changes the source, so that the pool sees another task.
absl::Status RunWarm(DeviceBackend* backend, const std::string& prefix = "") {
  ExecRequest request = Request();
  request.set_reference_source(absl::StrCat(prefix, kSoftmaxReference));
  ASSIGN_OR_RETURN(ExecResult result, backend->Run(request, absl::Now() + absl::Minutes(2)));
  if (result.outcome().reason() == Outcome::OK) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the honest job failed: ", result.outcome().message()));
}

absl::Status Run(Bench* bench) {
  int workers = absl::GetFlag(FLAGS_workers);
  if (workers <= 0) workers = std::max(1u, std::thread::hardware_concurrency());
  const int warm_jobs = absl::GetFlag(FLAGS_warm_jobs);
  WorkerPoolOptions options;
  options.workers = workers;
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(auto backend, StartNativeBackend(options));
  const double start_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const std::string sandbox = backend->sandbox_description();
  std::atomic<int> task{0};
  const auto one_task = [&](bool measured) {
    return Time(measured ? warm_jobs : 2 * workers, workers,
                [&] { return RunWarm(backend.get()); });
  };
  const auto many_tasks =
      [&](bool measured) {  // no warm-up: that of one task has warmed the workers
        return Time(measured ? warm_jobs : 0, workers,
                    [&] { return RunWarm(backend.get(), absl::StrCat("# task ", task++, "\n")); });
      };
  ASSIGN_OR_RETURN(const auto warm, bench->Measure({one_task, many_tasks}));
  backend.reset();

  bench->set_subject("execution service");
  const std::string setting =
      absl::StrCat("softmax of 64 x 200, 5 trials, ", workers, " jobs at once, ");
  const auto rate = [&](const std::vector<double>& seconds) {
    return Figure{"rate",       warm_jobs / Mean(seconds), "jobs/s", std::nullopt,
                  std::nullopt, Rates(warm_jobs, seconds)};
  };
  bench->Add(setting + "jobs of one task", {rate(warm[0])});
  bench->Add(setting + "each job another task", {rate(warm[1])});
  bench->Add("sandbox: " + sandbox, {{"time to start the pool", start_seconds, "s"}});
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "Jobs per second of the warm pool.", .warmup = 1, .repeats = 1},
                     argc, argv, tritonrl::Run);
}
