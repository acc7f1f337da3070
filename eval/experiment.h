// Experiments of the paper: several trainings that differ in a few settings, and a table of their
// results. Each training has its own run folder, so that an interrupted experiment can be resumed.
#ifndef TRITONRL_EVAL_EXPERIMENT_H_
#define TRITONRL_EVAL_EXPERIMENT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/grpo/evaluation.h"

namespace tritonrl {

// One training of an experiment.
struct Arm {
  std::string name;                    // folder below the experiment's
  std::vector<std::string> row;        // first cells of its row in the table
  std::vector<std::string> overrides;  // "path=value" for the trainer
};

struct Experiment {
  std::string table;                // "reward_shape"
  std::string title;                // heading of the table
  std::vector<std::string> header;  // of the first cells
  std::string config;               // configuration file of the trainer
  std::vector<Arm> arms;
};

// Table 'reward_shape' of the paper (hierarchical against uniform rewards) at a scale: "mini"
// trains the mini policy on the mini suite. InvalidArgument lists the known names.
absl::StatusOr<Experiment> FindExperiment(const std::string& table, const std::string& scale);

struct ExperimentOptions {
  std::string output;                  // folder that gets one run folder an arm, and <table>.md
  std::vector<std::string> overrides;  // for every arm, before its own
  std::string trainer;                 // path of the trainer binary
  double arm_timeout_s = 6 * 3600;
  std::function<bool()> stopped = [] { return false; };
};

// Evaluations of one arm before and after training.
struct ArmResult {
  EvaluationResult before;
  EvaluationResult after;
};

// Trains or resumes an arm unless its last evaluation is on file. Cancelled when stopped.
absl::StatusOr<ArmResult> RunArm(const Experiment& experiment, const Arm& arm,
                                 const ExperimentOptions& options);

// The table as Markdown, with notes on its limits. `results` may have fewer elements than arms.
std::string ExperimentMarkdown(const Experiment& experiment, const ExperimentOptions& options,
                               const std::vector<ArmResult>& results);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_EXPERIMENT_H_
