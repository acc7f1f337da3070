// The evaluations of a run on file: evaluations.jsonl and the samples behind them.
#ifndef TRITONRL_TRAINER_GRPO_EVALUATION_LOG_H_
#define TRITONRL_TRAINER_GRPO_EVALUATION_LOG_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "trainer/grpo/evaluation.h"
#include "trainer/grpo/evaluator.h"
#include "trainer/grpo/run_paths.h"

namespace tritonrl {

class EvaluationLog {
 public:
  explicit EvaluationLog(RunPaths paths) : paths_(std::move(paths)) {}

  // Reads what is on file for at most `done` steps; later lines are cut. A run that begins
  // (done == 0) starts empty.
  absl::Status Open(int64_t done);
  // Null when there is none for that step.
  const EvaluationResult* Find(int64_t step) const;
  // Writes the samples, then the line.
  absl::Status Add(const Evaluator::Finished& finished);

 private:
  RunPaths paths_;
  std::map<int64_t, EvaluationResult> results_;
};

// One line for the person: "After 0 steps: correct 45.3% ...".
std::string EvaluationLine(const EvaluationResult& result);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_EVALUATION_LOG_H_
