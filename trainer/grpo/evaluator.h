#ifndef TRITONRL_TRAINER_GRPO_EVALUATOR_H_
#define TRITONRL_TRAINER_GRPO_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/process_group.h"
#include "trainer/grpo/evaluation.h"
#include "trainer/grpo/run_paths.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/grpo/sample_runner.h"

// Evaluations: generates and verifies sampled and greedy responses to a fixed set of tasks, gathers
// them on all ranks and stores them in evaluations.jsonl.

namespace tritonrl {

struct EvaluatorOptions {
  int samples = 10;           // samples per task; 0: none
  SamplingSettings sampling;  // sampling of these samples
  bool greedy = true;         // also one greedy response for each task
  uint64_t seed = 0;
  // Indices of the tasks for which this rank generates; nullopt: r, r + size, ... on rank r.
  std::optional<std::vector<int>> share;
};

class Evaluator {
 public:
  // `runner` and `ranks` must outlive this object.
  Evaluator(EvaluatorOptions options, std::vector<std::shared_ptr<const PreparedTask>> tasks,
            SampleRunner* runner, ProcessGroup* ranks);

  int num_tasks() const { return static_cast<int>(tasks_.size()); }

  // An evaluation in flight.
  struct Pending {
    int64_t step = 0;
    std::shared_ptr<SampleBatch> sampled;
    std::shared_ptr<SampleBatch> greedy;
    absl::Time started;

    int num_samples() const { return sampled->num_samples + greedy->num_samples; }
    int generated() const { return sampled->generated + greedy->generated; }
    int verified() const { return sampled->verified + greedy->verified; }
  };

  // Submits this rank's share of an evaluation to the engine.
  absl::StatusOr<Pending> Start(int64_t step);
  absl::Status WaitGenerated(const Pending& pending, absl::Time deadline,
                             const std::function<bool()>& keep_going);
  absl::Status WaitVerified(const Pending& pending, absl::Time deadline,
                            const std::function<bool()>& keep_going);

  struct Finished {
    EvaluationResult result;
    std::vector<SampleRecord> sampled;
    std::vector<SampleRecord> greedy;
  };
  // Gathers the records of all ranks on every rank and computes the result. Called by all ranks
  // together, after WaitVerified.
  absl::StatusOr<Finished> Gather(const Pending& pending);

 private:
  std::shared_ptr<SampleBatch> MakeBatch(int64_t step, bool greedy) const;

  EvaluatorOptions options_;
  std::vector<std::shared_ptr<const PreparedTask>> tasks_;
  SampleRunner* runner_;
  ProcessGroup* ranks_;
};

// The stored evaluations of a run: evaluations.jsonl and the sample files.
class EvaluationLog {
 public:
  explicit EvaluationLog(RunPaths paths) : paths_(std::move(paths)) {}

  // Reads the results up to step `done` and drops later lines from the file; with done == 0 (a new
  // run) drops all. Must be called before Add.
  absl::Status Open(int64_t done);
  // Null if there is none for that step.
  const EvaluationResult* Find(int64_t step) const;
  // Writes the sample files, then the line of evaluations.jsonl.
  absl::Status Add(const Evaluator::Finished& finished);

 private:
  RunPaths paths_;
  std::unique_ptr<JsonlJournal> journal_;
  std::map<int64_t, EvaluationResult> results_;
};

// One line for the user: "Held-out tasks after 0 steps: valid 80.1% ...".
std::string EvaluationLine(const EvaluationResult& result);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_EVALUATOR_H_
