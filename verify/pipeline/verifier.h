// The verifier: walks a candidate program through the layers and hands back a typed verdict.
//
//   Verifier verifier(options, backend.get(), /*judge=*/nullptr);
//   RETURN_IF_ERROR(verifier.Open());
//   std::future<Verdict> verdict = verifier.Submit({.task = task, .code = code, .key = "step 3
//   sample 5"});
//
// Layers are walked cheapest first and the walk stops at the first that fails: syntax and linter on
// a thread here, then one run at the device backend (compile, correctness, times), then the judge
// if one is given (`judge_queue.h`: many questions at once, each asked once). What goes wrong on
// our side is retried a bounded number of times and in the end reported as such, never as
// a failure of the candidate.
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
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

class DeviceBackend;
class Judge;

struct VerifyRequest {
  Task task;
  std::string code;        // The candidate program. Used when `response` is empty.
  std::string response;    // A whole response (plan and fenced code), split here; malformed shapes
                           // fail "syntax".
  bool truncated = false;  // The response was cut off at the length limit.
  std::string key;         // Returned in the verdict, otherwise unused.
};

struct VerifierOptions {
  int parallel = 2;    // Requests worked on at the same time; the backend's number of workers.
  uint64_t seed = 0;   // Keys weights and random inputs; the same for all candidates of a task.
  int trials = 5;      // Random inputs that must all agree.
  double atol = 1e-2;  // |got - want| <= atol + rtol * |want|
  double rtol = 1e-2;
  // EXEC_MODE_ROBUST judges against float64 on further inputs; atol and rtol then count only where
  // there is no float64 result.
  ExecMode mode = EXEC_MODE_PAPER;
  bool measure_time = true;  // False: the speedup layer is not walked.
  // The functionality layer (linter, run-time audit, judge). False reproduces the paper's figures
  // "without robust verifier": such verdicts say OK there without having looked.
  bool check_functionality = true;
  // Wall clock for one run of one candidate; zero: as long as the backend allows.
  absl::Duration run_limit = absl::ZeroDuration();
  // Part of the functionality layer: forward is called again with kernels that write nothing.
  bool ablation = true;
  // On a GPU: one call more under a profiler, which says whose kernels took the time. Starting the
  // profiler takes seconds in each process.
  bool gpu_profile = true;
  absl::Duration wait_limit = absl::Minutes(5);  // Waiting for a worker and running, one attempt.
  int max_attempts = 3;  // Runs spent on infrastructure errors before giving up.
  int64_t max_source_bytes = 256 << 10;
  bool cache = true;    // Equal (task, program, settings) is answered from memory or the journal.
  std::string journal;  // JSONL file to which each verdict is appended; read by Open. "" = none.
  int judge_parallel = 16;  // Questions to the judge in flight; they hold up no run.
  std::string judge_cache;  // JSONL file of the judge's opinions, read by Open. "" = memory only.
  std::string device_model =
      "l40s";  // Figures of modelled times: "l40s", or "l40s_mini" for the mini suite.
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

class Verifier {
 public:
  // `backend` and `judge` (may be null: off) must outlive the verifier.
  Verifier(const VerifierOptions& options, DeviceBackend* backend, Judge* judge);
  // Waits for what is running; what has not been started ends as CANCELLED.
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  // Replays the journal and the judge's opinions, if there are any. A torn last line is cut off;
  // any other line that does not parse is an error naming the file and line. Call once, before
  // Submit.
  absl::Status Open();

  // Never blocks for the work; the future always gets a value. Equal requests in flight are run
  // once.
  std::future<Verdict> Submit(VerifyRequest request);

  // The same, with a callback that is called exactly once, on a thread of the verifier.
  void Submit(VerifyRequest request, std::function<void(Verdict)> done);

  // No more work is begun: what waits ends as CANCELLED, as does what is submitted
  // from now on; what runs goes on to its end. For a batch that was interrupted.
  void Close();

  // Everything besides task and program that a verdict depends on, as one line: backend, seed,
  // tolerances, limits, judge. Verdicts of two settings are not to be mixed.
  std::string settings() const;

  // The first error met while appending to the journal or the opinions (disk full, ...); verdicts
  // are still delivered.
  absl::Status JournalStatus() const;

  VerifierCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PIPELINE_VERIFIER_H_
