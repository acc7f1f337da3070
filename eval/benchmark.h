#ifndef TRITONRL_EVAL_BENCHMARK_H_
#define TRITONRL_EVAL_BENCHMARK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/program.h"
#include "parallel/process_group.h"
#include "rollout/engine/engine_config.pb.h"
#include "tasks/prompt_format.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/evaluator.h"
#include "verify/verdict/metrics.h"

// Benchmark of a checkpoint: k verified samples for each task of a folder, metrics, Markdown
// tables.

namespace tritonrl {

// Columns are padded to one width, the first is left-aligned and the others right-aligned. A row
// that is shorter than the header is filled with empty cells; "|" in a cell is escaped.
std::string MarkdownTable(const std::vector<std::string>& header,
                          const std::vector<std::vector<std::string>>& rows);

// 0.7831 -> "78.3"
std::string Percent(double share);

struct BenchmarkOptions {
  PolicyConfig policy;
  std::string tasks;  // folder of task files
  int k = 10;         // samples for each task
  PromptStyle style = PromptStyle::kFull;
  double temperature = 1.0;
  double top_p = 1.0;
  // 0: 2048 and 16384 as in the paper, or less for a checkpoint of fewer positions.
  int max_prompt_tokens = 0;
  int max_response_tokens = 0;
  EngineConfig engine;
  int threads = 0;
  int max_tasks = 0;  // 0: all
  uint64_t seed = 0;
  VerifierConfig verifier;
  bool preflight = false;        // leave out unsound tasks (verify/preflight)
  double timeout_s = 24 * 3600;  // of the whole benchmark
  // Folder for verdicts.jsonl, samples.jsonl and results.json; empty: writes nothing. A repeated
  // command reuses the verdicts.
  std::string output;
};

struct BenchmarkResult {
  Metrics best;                       // the paper's: maximum over the k samples of each task
  std::vector<std::string> problems;  // task files left out
  Evaluator::Finished details;
  bool stopped = false;  // by a signal
};

// `ranks`: one, or the ranks of a tensor-parallel model (rollout/distributed/tensor_parallel.h).
// Ranks but the first only run the engine's steps, and have no result.
absl::StatusOr<std::optional<BenchmarkResult>> RunBenchmark(const BenchmarkOptions& options,
                                                            const SignalHandler& stop,
                                                            ProcessGroup* ranks);

// For a terminal; modelled speedups are marked.
std::string BenchmarkTable(const BenchmarkResult& result, int k);

// {"tasks", "k", "valid", "compiled", "correct", "fast_1", "fast_2", "mean_speedup", "modelled",
//  "pass_at": {...}, ...} as indented JSON.
std::string BenchmarkJson(const BenchmarkResult& result, const BenchmarkOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_BENCHMARK_H_
