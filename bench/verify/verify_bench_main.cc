// Measures, in one run: verdicts per second of a warm pool, with and without copies of candidates,
// by the strict and the robust rules, beside a fresh `python naive_check.py` per candidate;
// preflight tasks per second; and linted candidates per second of one core.
#include <time.h>

#include <future>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "exec/backend/backend_factory.h"
#include "exec/device_backend.h"
#include "tasks/dataset.h"
#include "tasks/response.h"
#include "verify/linter/linter.h"
#include "verify/pipeline/verifier.h"
#include "verify/preflight/preflight.h"
#include "verify/verdict/verdict.h"

ABSL_FLAG(int, workers, 0, "Processes at once; 0: the number of cores.");
ABSL_FLAG(int, candidates, 64, "Different candidates for the warm pool.");
ABSL_FLAG(int, copies, 4, "How often each candidate comes in the run with copies.");
ABSL_FLAG(int, naive, 8, "Candidates for the naive check, which --nopeer leaves out.");
ABSL_FLAG(int, preflight, 60, "Different tasks for preflight, by strict and by robust rules.");
ABSL_FLAG(std::string, backend, "native", "native or cuda.");
ABSL_FLAG(bool, timing, true, "false: the speedup layer is left out.");
ABSL_FLAG(bool, pool, true, "false: only the linter is measured.");

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
    pairs.push_back({example.reference, ReadResponse(example.response, ResponseStyle()).code,
                     example.response});
  }
  return pairs;
}

// Uses this thread's CPU time, so that other load does not disturb the figure of one core.
double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void BenchLint(Bench* bench, const std::vector<Pair>& pairs) {
  for (const Pair& pair : pairs) Lint(pair.candidate);  // warm-up
  const double start = CpuSeconds();
  double linted = 0, accepted = 0;
  while (CpuSeconds() < start + 1.0) {
    for (const Pair& pair : pairs) accepted += Lint(pair.candidate).ok();
    linted += static_cast<double>(pairs.size());
  }
  bench->Add("linter, one core",
             {{"rate by CPU time", linted / (CpuSeconds() - start), "candidates/s"},
              {"accepted", 100 * accepted / linted, "%"}});
}

struct PoolRun {
  std::string setting;
  std::vector<Figure> figures;  // the rate first
};

// The rate of the warm pool. With `copies`, most verdicts come from the cache.
PoolRun BenchPool(const std::vector<Pair>& pairs, Rules rules, int copies, int workers,
                  DeviceBackend* backend) {
  VerifierOptions options;
  options.rules = rules;
  options.parallel = workers;
  options.device_model = "l40s_mini";
  options.measure_time = absl::GetFlag(FLAGS_timing);
  Verifier verifier(options, backend, nullptr);
  std::vector<std::future<Verdict>> futures;
  const absl::Time start = absl::Now();
  for (int copy = 0; copy < copies; ++copy) {
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
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const std::string setting = absl::StrCat("warm pool, rules ", RulesName(rules),
                                           copies > 1 ? ", with copies" : ", all different");
  std::vector<Figure> figures = {
      {"rate", static_cast<double>(futures.size()) / seconds, "verdicts/s"},
      Count("verdicts", futures.size()),
      Count("correct", correct),
      Count("infrastructure errors", faults),
      Count("runs", verifier.counts().runs)};
  for (const auto& [phase, sum] : phases) {
    figures.push_back({"mean time, " + phase, sum.first / sum.second, "s"});
  }
  return {setting, figures};
}

// Preflight of different tasks of the corpus, with all their probes.
void BenchPreflight(Bench* bench, const std::vector<Pair>& pairs, Rules rules, int count,
                    int workers, DeviceBackend* backend) {
  std::vector<Task> tasks;
  std::set<std::string> sources;
  for (const Pair& pair : pairs) {
    if (static_cast<int>(tasks.size()) == count) break;
    if (!sources.insert(pair.reference).second) continue;
    tasks.push_back({.id = absl::StrCat("task ", tasks.size()), .source = pair.reference});
  }
  PreflightOptions options;
  options.rules = rules;
  options.device_model = "l40s_mini";
  options.parallel = workers;
  const absl::Time start = absl::Now();
  const PreflightTotals totals = Count(CheckTasks(tasks, backend, options));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  bench->Add(absl::StrCat("preflight, rules ", RulesName(rules)),
             {{"rate", static_cast<double>(tasks.size()) / seconds, "tasks/s"},
              Count("tasks", tasks.size()),
              Count("sound", totals.sound),
              Count("unsound", totals.unsound),
              Count("broken", totals.broken),
              Count("not checked", totals.not_checked)});
}

// Verdicts per second of a fresh Python process for each candidate.
absl::StatusOr<double> BenchNaive(Bench* bench, const std::vector<Pair>& pairs, int count,
                                  int workers) {
  ASSIGN_OR_RETURN(const std::string folder, MakeTempDirectory("verify_bench"));
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
        const auto lines = RunPeer({.script = "bench/verify/naive_check.py",
                                    .arguments = {a, b},
                                    .env = {{"OMP_NUM_THREADS", "1"}},
                                    .timeout = absl::Minutes(2)});
        ok[t] += lines.ok() && lines->front().value("correct", false);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  RETURN_IF_ERROR(RemoveTree(folder));
  bench->Add("fresh Python process each, allclose",
             {{"rate", count / seconds, "verdicts/s"},
              Count("verdicts", count),
              {"called correct", std::accumulate(ok.begin(), ok.end(), 0.0)}});
  return count / seconds;
}

absl::Status Run(Bench* bench) {
  int workers = absl::GetFlag(FLAGS_workers);
  if (workers <= 0) workers = static_cast<int>(std::thread::hardware_concurrency());
  const std::vector<Pair> pairs = MakePairs(absl::GetFlag(FLAGS_candidates));
  bench->set_subject("verification");
  bench->set_peer_name("naive check");
  BenchLint(bench, pairs);
  if (!absl::GetFlag(FLAGS_pool)) return absl::OkStatus();
  BackendOptions options;
  ASSIGN_OR_RETURN(options.kind, ParseBackendKind(absl::GetFlag(FLAGS_backend)));
  options.workers = workers;
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceBackend> backend, MakeBackend(options));
  bench->Add(absl::StrCat("pool of ", workers, " workers, ", backend->sandbox_description()),
             {{"time to start", absl::ToDoubleSeconds(absl::Now() - start), "s"}});
  const int copies = absl::GetFlag(FLAGS_copies);
  std::vector<PoolRun> pools = {BenchPool(pairs, RULES_STRICT, 1, workers, backend.get()),
                                BenchPool(pairs, RULES_STRICT, copies, workers, backend.get()),
                                BenchPool(pairs, RULES_ROBUST, 1, workers, backend.get())};
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST}) {
    BenchPreflight(bench, pairs, rules, absl::GetFlag(FLAGS_preflight), workers, backend.get());
  }
  if (!bench->peer().empty()) {
    const int count = std::min<int>(absl::GetFlag(FLAGS_naive), static_cast<int>(pairs.size()));
    ASSIGN_OR_RETURN(const double naive, BenchNaive(bench, pairs, count, workers));
    for (PoolRun& pool : pools) pool.figures.front().peer = naive;
  }
  for (const PoolRun& pool : pools) bench->Add(pool.setting, pool.figures);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench(
      {.usage = "Verdicts per second, against a fresh Python process for each candidate.",
       .peer = "true"},
      argc, argv, tritonrl::Run);
}
