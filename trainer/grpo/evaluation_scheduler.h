// Decides when a run evaluates, runs the evaluation and records it.
#ifndef TRITONRL_TRAINER_GRPO_EVALUATION_SCHEDULER_H_
#define TRITONRL_TRAINER_GRPO_EVALUATION_SCHEDULER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/evaluator.h"
#include "trainer/grpo/model_state.h"
#include "trainer/grpo/run_paths.h"
#include "trainer/grpo/sample_runner.h"

namespace tritonrl {

// All ranks call each function together, unless stated otherwise; rank 0 prints and writes.
class EvaluationScheduler {
 public:
  struct Hooks {
    // Called while waiting; false ends the wait.
    std::function<bool()> keep_going;
    // Whether any rank received a stop signal or passed an error.
    std::function<absl::StatusOr<bool>(const absl::Status&)> any_stop;
    // Shows a line to the user.
    std::function<void(const std::string&)> say;
  };

  // All references must outlive this object. `dir`: the run folder.
  EvaluationScheduler(const GrpoHrdConfig& config, std::string dir, ProcessGroup* ranks,
                      ModelState* model, Evaluator* evaluator, InfraErrorJournal* infra_errors,
                      Hooks hooks);

  // Reads the stored evaluations of a run with `done` completed steps. Rank 0 only.
  absl::Status Open(int64_t done) { return log_.Open(done); }
  // Null if no evaluation is stored for that step. Rank 0 only.
  const EvaluationResult* Find(int64_t step) const { return log_.Find(step); }

  // Whether the configuration asks for an evaluation after `done` steps.
  bool Due(int64_t done) const;

  // Time limit of an evaluation.
  absl::Duration Timeout() const;

  // Evaluates after `done` steps unless the result is stored. Returns false if a stop was
  // requested.
  absl::StatusOr<bool> Evaluate(int64_t done);

  // The initial policy is evaluated after the first step, so that the user sees that step soon.
  // SaveInitialWeights is called before the step. EvaluateInitialPolicy restores the initial
  // weights while responses are generated; after an error or a stop the weights may still be the
  // initial ones. Only rank 0 keeps a copy: of the initial weights, or of the trained ones while
  // the initial ones are in use.
  void SaveInitialWeights();
  bool has_initial_weights() const { return has_initial_weights_; }
  absl::StatusOr<bool> EvaluateInitialPolicy(int64_t done);

 private:
  absl::StatusOr<bool> Finish(const Evaluator::Pending& pending);
  // Exchanges rank 0's weights with kept_weights_ and sends the new ones to all engines.
  absl::Status ExchangeWeights(int64_t version);

  const GrpoHrdConfig& config_;
  ProcessGroup& ranks_;
  ModelState& model_;
  Evaluator& evaluator_;
  InfraErrorJournal& infra_errors_;
  Hooks hooks_;
  EvaluationLog log_;
  bool has_initial_weights_ = false;
  at::Tensor kept_weights_;  // in CPU memory; defined on rank 0 only
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_EVALUATION_SCHEDULER_H_
