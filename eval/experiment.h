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
  std::string name;                    // name of the arm's run folder
  std::vector<std::string> row;        // first cells of the arm's row in the table
  std::vector<std::string> overrides;  // "path=value" for the trainer
};

struct Experiment {
  std::string table;                // "reward_shape"
  std::string title;                // heading of the table
  std::vector<std::string> header;  // header of the rows' first cells
  std::string config;               // configuration file of the trainer
  std::vector<Arm> arms;
};

// The experiment of a table: "reward_shape" (hierarchical against uniform rewards), at scale
// "mini", which trains the mini policy on the mini suite. InvalidArgument lists the known names.
absl::StatusOr<Experiment> FindExperiment(const std::string& table, const std::string& scale);

struct ExperimentOptions {
  std::string output;                  // folder for one run folder per arm and <table>.md
  std::vector<std::string> overrides;  // for every arm, before the arm's own overrides
  std::string trainer;                 // path of the trainer binary
  double arm_timeout_s = 6 * 3600;
  std::function<bool()> stopped = [] { return false; };
};

// Evaluations of one arm before and after training.
struct ArmResult {
  EvaluationResult before;
  EvaluationResult after;
};

// Trains or resumes an arm unless its results are complete, and returns them. Cancelled if stopped;
// Unavailable if the trainer fails; Internal if it leaves no evaluations.
absl::StatusOr<ArmResult> RunArm(const Experiment& experiment, const Arm& arm,
                                 const ExperimentOptions& options);

// The table as Markdown, with notes on its limits. `results` may have fewer elements than arms.
std::string ExperimentMarkdown(const Experiment& experiment, const ExperimentOptions& options,
                               const std::vector<ArmResult>& results);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_EXPERIMENT_H_
