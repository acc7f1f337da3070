// bazel run //verify:bench: verdicts per second of the verifier with a warm pool, with and without
// repeats, in the paper's mode and in robust mode, beside a fresh `python naive_check.py` for each
// candidate, all in one run; tasks that preflight looks at per second; and candidates linted per
// second on one core.
#include <time.h>

#include <cstdio>
#include <future>
#include <map>
#include <set>
#include <string>
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
#include "exec/device_backend.h"
#include "tasks/dataset.h"
#include "tasks/prompt_format.h"
#include "verify/linter/linter.h"
#include "verify/pipeline/verifier.h"
#include "verify/preflight/preflight.h"
#include "verify/verdict/verdict.h"

ABSL_FLAG(int, workers, 0, "processes at once; 0: the number of cores");
ABSL_FLAG(int, candidates, 64, "different candidates for the warm pool");
ABSL_FLAG(int, repeats, 4, "how often each comes in the run with repeats");
ABSL_FLAG(int, naive, 8, "candidates for the naive check");
ABSL_FLAG(int, preflight, 60, "different tasks for preflight, in each mode");
ABSL_FLAG(std::string, backend, "interpreter", "interpreter or cuda");
ABSL_FLAG(bool, timing, true, "false: the speedup layer is left out");

namespace tritonrl {
namespace {

struct Pair {
  std::string reference, candidate, response;
};

// Right and wrong programs of the generated corpus, as a policy under training writes them.
std::vector<Pair> MakePairs(int count) {
  std::vector<Pair> pairs;
  for (uint64_t i = 0; static_cast<int>(pairs.size()) < count; ++i) {
    const CorpusExample example = MakeCorpusExample({.seed = 2024}, i);
    pairs.push_back(
        {example.reference, SplitResponseText(example.response).code, example.response});
  }
  return pairs;
}

double Seconds(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

// CPU seconds of this thread: the figure is one core's, whatever else the machine does.
double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void BenchLint(const std::vector<Pair>& pairs) {
  for (const Pair& pair : pairs) Lint(pair.candidate);  // page in
  const double start = CpuSeconds();
  int64_t linted = 0, accepted = 0;
  while (CpuSeconds() < start + 1.0) {
    for (const Pair& pair : pairs) accepted += Lint(pair.candidate).ok();
    linted += static_cast<int64_t>(pairs.size());
  }
  std::printf("lint: %.0f candidates per CPU second of one core (%.0f%% accepted)\n",
              static_cast<double>(linted) / (CpuSeconds() - start),
              100.0 * static_cast<double>(accepted) / static_cast<double>(linted));
}

void BenchPool(const std::vector<Pair>& pairs, ExecMode mode, int repeats, int workers,
               DeviceBackend* backend) {
  VerifierOptions options;
  options.mode = mode;
  options.parallel = workers;
  options.device_model = "l40s_mini";
  options.measure_time = absl::GetFlag(FLAGS_timing);
  options.gpu_profile = false;  // takes seconds of each process; training does without
  Verifier verifier(options, backend, nullptr);
  std::vector<std::future<Verdict>> futures;
  const absl::Time start = absl::Now();
  for (int r = 0; r < repeats; ++r) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      futures.push_back(
          verifier.Submit({.task = {.id = absl::StrCat("task ", i), .source = pairs[i].reference},
                           .response = pairs[i].response}));
    }
  }
  int correct = 0, faults = 0;
  std::map<std::string, std::pair<double, int>> phases;
  for (auto& future : futures) {
    const Verdict v = future.get();
    correct += IsCorrect(v);
    faults += IsInfraError(v);
    for (const auto& [phase, spent] : v.worker().phase_seconds()) {
      phases[phase].first += spent;
      ++phases[phase].second;
    }
  }
  const double seconds = Seconds(start);
  std::printf(
      "warm pool, mode %s, %s: %zu verdicts in %.1f s = %.1f/s (%d correct, %d infrastructure "
      "errors, "
      "%lld "
      "runs)\n",
      ExecModeName(mode).c_str(), repeats > 1 ? "with repeats" : "all different", futures.size(),
      seconds, futures.size() / seconds, correct, faults,
      static_cast<long long>(verifier.counts().runs));
  std::printf("  mean seconds by phase:");
  for (const auto& [phase, sum] : phases) {
    std::printf(" %s %.3f", phase.c_str(), sum.first / sum.second);
  }
  std::printf("\n");
}

// Different tasks of the corpus, each with all its probes.
void BenchPreflight(const std::vector<Pair>& pairs, ExecMode mode, int count, int workers,
                    DeviceBackend* backend) {
  std::vector<Task> tasks;
  std::set<std::string> sources;
  for (const Pair& pair : pairs) {
    if (static_cast<int>(tasks.size()) == count) break;
    if (!sources.insert(pair.reference).second) continue;
    tasks.push_back({.id = absl::StrCat("task ", tasks.size()), .source = pair.reference});
  }
  PreflightOptions options;
  options.mode = mode;
  options.device_model = "l40s_mini";
  options.parallel = workers;
  const absl::Time start = absl::Now();
  const PreflightTotals totals = Count(CheckTasks(tasks, backend, options));
  const double seconds = Seconds(start);
  std::printf(
      "preflight, mode %s: %zu tasks in %.1f s = %.1f/s (%d sound, %d unsound, %d broken, %d not "
      "checked)\n",
      ExecModeName(mode).c_str(), tasks.size(), seconds,
      static_cast<double>(tasks.size()) / seconds, totals.sound, totals.unsound, totals.broken,
      totals.not_checked);
}

absl::Status BenchNaive(const std::vector<Pair>& pairs, int count, int workers) {
  ASSIGN_OR_RETURN(PythonEnv env, FindPythonEnv());
  ASSIGN_OR_RETURN(std::string script, Runfile("bench/verify/naive_check.py"));
  ASSIGN_OR_RETURN(std::string folder, MakeTempDirectory("verify_bench"));
  RunCommandOptions options;
  options.timeout = absl::Minutes(2);
  options.env = env.Environment();
  options.env.emplace_back("OMP_NUM_THREADS", "1");
  const absl::Time start = absl::Now();
  std::vector<std::thread> threads;
  std::vector<int> ok(workers, 0);
  for (int t = 0; t < workers; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < count; i += workers) {
        const std::string a = JoinPath(folder, absl::StrCat("a", i, ".py")),
                          b = JoinPath(folder, absl::StrCat("b", i, ".py"));
        if (!WriteFileAtomic(a, pairs[i].reference).ok() ||
            !WriteFileAtomic(b, pairs[i].candidate).ok())
          continue;
        auto result = RunCommand({env.interpreter, script, a, b}, options);
        ok[t] += result.ok() && result->out == "ok\n";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = Seconds(start);
  int good = 0;
  for (int n : ok) good += n;
  std::printf("fresh python each, allclose: %d verdicts in %.1f s = %.2f/s (%d called correct)\n",
              count, seconds, count / seconds, good);
  return RemoveTree(folder);
}

absl::Status Main() {
  int workers = absl::GetFlag(FLAGS_workers);
  if (workers <= 0) workers = static_cast<int>(std::thread::hardware_concurrency());
  const std::vector<Pair> pairs = MakePairs(absl::GetFlag(FLAGS_candidates));
  BenchLint(pairs);
  BackendOptions options;
  ASSIGN_OR_RETURN(options.kind, ParseBackendKind(absl::GetFlag(FLAGS_backend)));
  options.workers = workers;
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceBackend> backend, MakeBackend(options));
  std::printf("pool of %d workers started in %.1f s (%s)\n", workers, Seconds(start),
              backend->sandbox_description().c_str());
  BenchPool(pairs, EXEC_MODE_PAPER, 1, workers, backend.get());
  BenchPool(pairs, EXEC_MODE_PAPER, absl::GetFlag(FLAGS_repeats), workers, backend.get());
  BenchPool(pairs, EXEC_MODE_ROBUST, 1, workers, backend.get());
  for (const ExecMode mode : {EXEC_MODE_PAPER, EXEC_MODE_ROBUST}) {
    BenchPreflight(pairs, mode, absl::GetFlag(FLAGS_preflight), workers, backend.get());
  }
  return BenchNaive(
      pairs, std::min<int>(absl::GetFlag(FLAGS_naive), static_cast<int>(pairs.size())), workers);
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Verdicts per second, against a fresh Python process for each candidate.",
                         argc, argv);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const absl::Status status = tritonrl::Main();
  if (!status.ok()) std::fprintf(stderr, "bench: %s\n", tritonrl::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
