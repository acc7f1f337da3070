#ifndef TRITONRL_EVAL_BENCHMARK_H_
#define TRITONRL_EVAL_BENCHMARK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/program.h"
#include "eval/markdown.h"
#include "parallel/process_group.h"
#include "rollout/engine/engine_config.pb.h"
#include "tasks/prompt_format.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/evaluator.h"
#include "verify/verdict/metrics.h"

// Benchmarks a checkpoint: k verified samples per task of a folder, metrics, and Markdown tables.

namespace tritonrl {

struct BenchmarkOptions {
  PolicyConfig policy;
  std::string tasks;    // folder of task files
  int k = 10;           // samples per task
  PromptFormat prompt;  // form of the prompts
  // How responses are read; names as in ChooseResponseStyle.
  std::string response_style = "auto";
  std::string code_block = "auto";
  double temperature = 1.0;
  double top_p = 1.0;
  // 0: 2048 and 16384, as in the paper, or less if the checkpoint has fewer positions.
  int max_prompt_tokens = 0;
  int max_response_tokens = 0;
  EngineConfig engine;
  int threads = 0;
  int max_tasks = 0;  // 0: all
  uint64_t seed = 0;
  VerifierConfig verifier;
  bool preflight = false;        // removes unsound tasks (verify/preflight)
  double timeout_s = 24 * 3600;  // time limit of the whole benchmark
  // Folder for verdicts.jsonl, samples.jsonl and results.json; empty: no files. generated.jsonl
  // keeps each sample as it is generated. A repeated command reuses samples and verdicts.
  std::string output;
};

struct BenchmarkResult {
  Metrics best;                       // maximum over the k samples of each task, as in the paper
  ResponseStyle style;                // how the responses were read
  std::vector<std::string> problems;  // task files left out
  Evaluator::Finished details;
  std::string first_infra_error;  // of the samples; "": there is none
  bool stopped = false;           // stopped by a signal
  absl::Status written;           // why the files in the output folder are not complete
};

// Runs the benchmark. `ranks`: one rank, or the ranks of a tensor-parallel model
// (rollout/distributed/tensor_parallel.h), of which all but the first only run the engine's steps
// and return nullopt. Unavailable if infrastructure errors left no sample to count. An output file
// that cannot be written does not fail the run (see `written`).
absl::StatusOr<std::optional<BenchmarkResult>> RunBenchmark(const BenchmarkOptions& options,
                                                            const SignalHandler& stop,
                                                            ProcessGroup* ranks);

// The result as a table for a terminal; modelled speedups are marked.
std::string BenchmarkTable(const BenchmarkResult& result, int k);

// The result as indented JSON: {"tasks", "k", "valid", "compiled", "correct", "fast_1", "fast_2",
// "mean_speedup", "modelled", "pass_at": {...}, "max_over_first": {...}, "levels": {...}, ...}.
std::string BenchmarkJson(const BenchmarkResult& result, const BenchmarkOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_BENCHMARK_H_
