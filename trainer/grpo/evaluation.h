// What an evaluation on held-out tasks found, and the table of two of them side by side.
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

struct EvaluationResult {
  int64_t step = 0;  // training steps made before it
  int k = 0;         // samples for each task
  double temperature = 1;
  // Expectation of the maximum over 1, 5, 10, ... and k samples; [1] is the plain sample mean.
  std::map<int, Metrics> pass_at;
  double fused_share = 0;  // fused / (fused + split) plans; 0 where there is neither
  double mean_tokens = 0;  // of a response
  bool has_greedy = false;
  Metrics greedy;
  double greedy_fused_share = 0;
  int infra_errors = 0;  // samples left out
  double seconds = 0;

  bool sampled() const { return k > 0; }
};

// Figures from the records of one evaluation. Either list may be empty.
absl::StatusOr<EvaluationResult> Summarise(const std::vector<SampleRecord>& sampled,
                                           const std::vector<SampleRecord>& greedy);

double FusedShare(const std::vector<SampleRecord>& records);

// Flat fields for evaluations.jsonl ("correct", "pass_10_correct", "greedy_correct", ...), and
// back.
MetricFields EvaluationFields(const EvaluationResult& result);
absl::StatusOr<EvaluationResult> EvaluationFromJson(const std::string& line);

// A table for a terminal, one row a figure: before, after and the change in points. `after` may be
// null: one column. Speedups say "modelled" where they are.
std::string EvaluationTable(const EvaluationResult& before, const EvaluationResult* after);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_EVALUATION_H_
