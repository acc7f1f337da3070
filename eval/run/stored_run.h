// Judges generations that somebody made before: their verdicts, figures and files.
#ifndef TRITONRL_EVAL_RUN_STORED_RUN_H_
#define TRITONRL_EVAL_RUN_STORED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/program.h"
#include "eval/metrics/scores.h"
#include "eval/run/estimates.h"
#include "eval/sources/file_source.h"
#include "eval/sources/version.h"
#include "trainer/config/config.pb.h"

namespace tritonrl {

struct StoredOptions {
  std::string generations;         // file or folder (eval/sources/file_source.h)
  std::vector<std::string> tasks;  // folders of task files; may be empty for CUDA-L1
  LoadOptions load;                // number of samples, model, style of responses
  int max_tasks = 0;               // 0: all
  VerifierConfig verifier;
  uint64_t seed = 0;
  // Also the figures without functionality checks. Candidates that were refused before they were
  // compared run once more, untimed.
  bool without_robust = false;
  double timeout_s = 24 * 3600;  // of all verdicts
  // Folder for verdicts.jsonl (and verdicts_open.jsonl), from which a repeated command takes
  // verdicts; generations.jsonl, a line for each sample with its verdict; results.json. Empty: no
  // files.
  std::string output;
};

struct StoredResult {
  std::string layout;                 // of the generations
  KernelBenchVersion version;         // of the tasks
  std::vector<std::string> problems;  // what was left out, and why
  int samples_per_task = 0;
  std::vector<ScoredSample> samples;  // in the order of tasks and samples
  int run_again = 0;                  // without functionality checks
  std::vector<EstimateRow> estimates;
  std::string first_infra_error;  // "": there is none
  bool stopped = false;           // by a signal; then there are no estimates
};

// Reads everything before the first program runs, and shows progress on stderr. InvalidArgument and
// NotFound name what is wrong with the tasks or generations. Unavailable: no sample has a verdict.
absl::StatusOr<StoredResult> JudgeStored(const StoredOptions& options, const SignalHandler& stop);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_RUN_STORED_RUN_H_
