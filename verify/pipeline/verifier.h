// The verifier, which walks a candidate program through the layers and returns a verdict.
#ifndef TRITONRL_VERIFY_PIPELINE_VERIFIER_H_
#define TRITONRL_VERIFY_PIPELINE_VERIFIER_H_

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "exec/messages.pb.h"
#include "tasks/loader.h"
#include "tasks/response.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

class DeviceBackend;
class Judge;

struct VerifyRequest {
  Task task;
  std::string code;        // The candidate program. Used if `response` is empty.
  std::string response;    // A whole response (plan and fenced code), which the verifier splits; a
                           // malformed response fails syntax.
  ResponseStyle style;     // How the response is read.
  bool truncated = false;  // The response was cut off at the length limit.
  std::string key;         // Copied to Verdict.key, otherwise unused.
};

struct VerifierOptions {
  int parallel = 2;    // Candidates verified at the same time; the backend's number of workers.
  uint64_t seed = 0;   // Seed of weights and random inputs; the same for all candidates of a task.
  int trials = 5;      // Number of trials, which must all pass.
  double atol = 1e-2;  // |got - want| <= atol + rtol * |want|; both 0: 1e-2 each
  double rtol = 1e-2;
  // RULES_STRICT: judge, run-time audit, ablation and the checks of the run as described there.
  // RULES_ROBUST: the same, but compares with float64 on additional inputs, and uses atol and rtol
  // only for outputs without a float64 result. RULES_PAPER: who computes (linter and run),
  // compilation, outputs and the mean of ten calls alone; the judge decides on every candidate that
  // linter and run accept.
  Rules rules = RULES_STRICT;
  bool measure_time = true;  // False: the speedup layer is not walked.
  // Checks functionality by linter and run-time audit. False reproduces the paper's figures
  // "without robust verifier": the layer's result is then OK without a check.
  bool check_functionality = true;
  // Wall time limit of one run of one candidate; zero: the backend's limit.
  absl::Duration run_limit = absl::ZeroDuration();
  // Part of the functionality layer, unless RULES_PAPER: calls forward again while kernels write
  // nothing.
  bool ablation = true;
  absl::Duration wait_limit = absl::Minutes(5);  // For one attempt: wait for a worker, and run.
  int max_attempts = 3;  // Maximum runs of one candidate; only infrastructure errors are retried.
  int64_t max_source_bytes = 256 << 10;
  bool cache = true;    // Takes verdicts on equal (task, program, settings) from memory or journal.
  std::string journal;  // JSONL file to which each verdict is appended; read by Open. "" = none.
  int judge_parallel = 16;  // Questions to the judge in flight; no run waits for them.
  std::string judge_cache;  // JSONL file of the judge's opinions, read by Open. "" = memory only.
  std::string device_model =
      "l40s";  // GPU of modelled times: "l40s", or "l40s_mini" for the mini suite.
};

struct VerifierCounts {
  int64_t submitted = 0;
  int64_t finished = 0;
  int64_t cache_hits = 0;
  int64_t replayed = 0;  // Verdicts read from the journal.
  int64_t runs = 0;      // Runs at the backend.
  int64_t retries = 0;
  int64_t infra_errors = 0;
  double seconds_lint = 0;
  double seconds_run = 0;
};

// Walks the layers cheapest first and stops at the first that fails: syntax and linter on a thread
// of the verifier, then one run at the device backend (compilation, correctness, times), then the
// judge, if there is one. Infrastructure errors are retried up to max_attempts times and then
// reported as such, never as a failure of the candidate. Thread-safe.
//
//   Verifier verifier(options, backend.get(), /*judge=*/nullptr);
//   RETURN_IF_ERROR(verifier.Open());
//   std::future<Verdict> verdict =
//       verifier.Submit({.task = task, .code = code, .key = "step 3 sample 5"});
class Verifier {
 public:
  // `backend` and `judge` must outlive the verifier; `judge` may be null.
  Verifier(const VerifierOptions& options, DeviceBackend* backend, Judge* judge);
  // Waits for the runs and judge questions in flight; all other requests end as CANCELLED.
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  // Reads the journal and the judge's opinions, if there are any. Removes an incomplete last line;
  // DataLoss names the file and any other line that does not parse. Call once, before Submit.
  absl::Status Open();

  // Returns at once; the future always gets a verdict. Equal requests in flight are run once.
  std::future<Verdict> Submit(VerifyRequest request);

  // The same with a callback, which is called exactly once: before returning, if the verdict is
  // cached or the verifier is closed; otherwise later, on a thread of the verifier or in Close.
  void Submit(VerifyRequest request, std::function<void(Verdict)> done);

  // Ends queued and later requests as CANCELLED, without starting further runs or judge questions.
  // Runs in flight are finished; a candidate for which the judge must be asked ends as
  // CANCELLED. For an interrupted batch.
  void Close();

  // One line of all settings on which a verdict depends besides task and program: backend, seed,
  // tolerances, limits, judge. Verdicts of different settings must not be mixed.
  std::string settings() const;

  // The first error of an append to the journal or the opinions (disk full, ...). Verdicts are
  // delivered in spite of such errors.
  absl::Status JournalStatus() const;

  // Why the judge is of no further use (JudgeQueue::Health); OK without a judge.
  absl::Status JudgeStatus() const;

  VerifierCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PIPELINE_VERIFIER_H_
