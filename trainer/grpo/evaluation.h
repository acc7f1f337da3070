// The result of an evaluation on held-out tasks, and a table that compares two results.
#ifndef TRITONRL_TRAINER_GRPO_EVALUATION_H_
#define TRITONRL_TRAINER_GRPO_EVALUATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/jsonl.h"
#include "trainer/grpo/sample_batch.h"
#include "verify/verdict/metrics.h"

namespace tritonrl {

// The metrics of an evaluation, for all tasks or for those of one level.
struct TaskMetrics {
  int tasks = 0;
  // Expected maximum over 1, 5, 10, ... and k samples (unbiased); [1] is the mean over samples.
  std::map<int, Metrics> pass_at;
  // The paper's figures at the same numbers: the maximum over the first 1, 5, 10, ... samples.
  std::map<int, Metrics> max_over_first;
  bool has_greedy = false;
  Metrics greedy;
};

struct EvaluationResult : TaskMetrics {
  int64_t step = 0;  // training steps before the evaluation
  int k = 0;         // samples per task
  double temperature = 1;
  std::map<int, TaskMetrics> levels;  // by level; tasks without a level are in the total only
  double fused_share = 0;             // fused / (fused + split) plans; 0 without such plans
  double mean_tokens = 0;             // mean length of a response
  double greedy_fused_share = 0;
  int infra_errors = 0;  // samples left out
  double seconds = 0;

  bool sampled() const { return k > 0; }
};

// Computes the result from the records of one evaluation. Either list may be empty.
absl::StatusOr<EvaluationResult> Summarise(const std::vector<SampleRecord>& sampled,
                                           const std::vector<SampleRecord>& greedy);

// fused / (fused + split) of the records' plans; 0 without such plans.
double FusedShare(const std::vector<SampleRecord>& records);

// The result as flat fields of evaluations.jsonl ("correct", "pass_10_correct", "max_10_correct",
// "greedy_correct", ..., and for level 1 the same with "level1_" before it).
MetricFields EvaluationFields(const EvaluationResult& result);
// Parses a line of evaluations.jsonl. DataLoss if it is not a JSON object with a step.
absl::StatusOr<EvaluationResult> EvaluationFromJson(const std::string& line);

// A table for a terminal with one row per metric: before, after and the change in percentage
// points; then rows for each level if there are several. `after` may be null: one column, "result".
// Modelled speedups are labelled "modelled".
std::string EvaluationTable(const EvaluationResult& before, const EvaluationResult* after);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_EVALUATION_H_
