#include "eval/experiment.h"

#include <signal.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/subprocess.h"
#include "eval/benchmark.h"
#include "trainer/config/config.h"
#include "trainer/grpo/run_paths.h"
#include "trainer/learner/policy.h"
#include "trainer/program/training_program.h"

namespace tritonrl {
namespace {

Arm UniformArm(double beta) {
  Arm arm;
  arm.name = absl::StrFormat("uniform_beta_%.1f", beta);
  arm.row = {"Uniform", absl::StrFormat("%.1f", beta)};
  arm.overrides = {"objective.reward_shape=UNIFORM", absl::StrCat("objective.beta=", beta)};
  return arm;
}

// Number of steps of an arm's run.
absl::StatusOr<int64_t> StepsOf(const Experiment& experiment, const Arm& arm,
                                const ExperimentOptions& options) {
  ASSIGN_OR_RETURN(const std::string path, FindInputPath(experiment.config));
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), arm.overrides.begin(), arm.overrides.end());
  ASSIGN_OR_RETURN(const GrpoHrdConfig config, LoadGrpoHrdConfig(path, overrides));
  return config.steps();
}

// Reads the stored evaluations by step.
absl::StatusOr<std::map<int64_t, EvaluationResult>> ReadEvaluations(const std::string& run_dir) {
  std::map<int64_t, EvaluationResult> results;
  const std::string path = RunPaths{run_dir}.Evaluations();
  if (!FileExists(path)) return results;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    absl::StatusOr<EvaluationResult> result = EvaluationFromJson(line);
    if (!result.ok()) continue;  // a partial line
    const int64_t step = result->step;
    results[step] = *std::move(result);
  }
  return results;
}

// Reads an arm's results; nullopt if the arm is not complete.
absl::StatusOr<std::optional<ArmResult>> ReadArm(const std::string& run_dir, int64_t steps) {
  ASSIGN_OR_RETURN(auto evaluations, ReadEvaluations(run_dir));
  if (evaluations.count(0) == 0 || evaluations.count(steps) == 0) return std::nullopt;
  // The final model is written after the last evaluation.
  if (!FileExists(RunPaths{run_dir}.FinalModel() + "/config.json")) return std::nullopt;
  return ArmResult{evaluations[0], evaluations[steps]};
}

// Runs the trainer until it ends; on a stop sends SIGTERM, so that it saves its state.
absl::StatusOr<ExitStatus> RunTrainer(const std::vector<std::string>& command,
                                      const ExperimentOptions& options) {
  SubprocessOptions start;
  start.argv = command;
  start.parent_death_signal = SIGTERM;
  ASSIGN_OR_RETURN(Subprocess trainer, Subprocess::Start(start));
  const absl::Time deadline = absl::Now() + absl::Seconds(options.arm_timeout_s);
  bool told = false;
  absl::Time give_up = absl::InfiniteFuture();
  while (true) {
    if (std::optional<ExitStatus> ended = trainer.Wait(absl::Milliseconds(200))) return *ended;
    if (!told && (options.stopped() || absl::Now() >= deadline)) {
      trainer.Signal(SIGTERM);
      told = true;
      give_up = absl::Now() + absl::Minutes(2);
    }
    if (absl::Now() >= give_up) return trainer.Kill();
  }
}

}  // namespace

absl::StatusOr<Experiment> FindExperiment(const std::string& table, const std::string& scale) {
  if (table != "reward_shape") {
    return absl::InvalidArgumentError(
        absl::StrCat("--table=", table, " is not known; there is: reward_shape"));
  }
  if (scale != "mini") {
    return absl::InvalidArgumentError(
        absl::StrCat("--scale=", scale, " is not known; there is: mini"));
  }
  Experiment experiment;
  experiment.table = table;
  experiment.title = "Hierarchical against uniform rewards, mini suite";
  experiment.header = {"Reward type", "beta"};
  experiment.config = "trainer/configs/grpo_hrd_mini.textproto";
  Arm hrd;
  hrd.name = "hrd";
  hrd.row = {"Hierarchical", "-"};
  hrd.overrides = {"objective.reward_shape=HRD"};
  experiment.arms = {hrd, UniformArm(0.5), UniformArm(1.0)};
  return experiment;
}

absl::StatusOr<ArmResult> RunArm(const Experiment& experiment, const Arm& arm,
                                 const ExperimentOptions& options) {
  const std::string run_dir = JoinPath(options.output, arm.name);
  ASSIGN_OR_RETURN(const int64_t steps, StepsOf(experiment, arm, options));
  ASSIGN_OR_RETURN(std::optional<ArmResult> result, ReadArm(run_dir, steps));
  if (result.has_value()) return *result;
  std::vector<std::string> command = {options.trainer,
                                      absl::StrCat("--config=", experiment.config)};
  for (const std::vector<std::string>& overrides : {options.overrides, arm.overrides}) {
    for (const std::string& override : overrides) {
      command.push_back("--set");
      command.push_back(override);
    }
  }
  command.push_back("--set");
  command.push_back(absl::StrCat("output_dir=", run_dir));
  ASSIGN_OR_RETURN(const ExitStatus ended, RunTrainer(command, options));
  if (options.stopped()) return absl::CancelledError("stopped by a signal");
  if (!ended.ok()) {
    return absl::UnavailableError(absl::StrCat("training of '", arm.name, "' ended with ",
                                               ended.ToString(), "; its run folder is ", run_dir,
                                               ", run the same command to resume"));
  }
  ASSIGN_OR_RETURN(result, ReadArm(run_dir, steps));
  if (!result.has_value()) {
    return absl::InternalError(absl::StrCat("training of '", arm.name,
                                            "' left no evaluation before and after in ", run_dir));
  }
  return *result;
}

std::string ExperimentMarkdown(const Experiment& experiment, const ExperimentOptions& options,
                               const std::vector<ArmResult>& results) {
  // The metrics of the paper's table: pass@10, here at the largest k that all results have.
  int k = results.empty() ? 0 : results[0].after.k;
  for (const ArmResult& result : results) {
    const auto& pass_at = result.after.pass_at;
    k = std::min(k, pass_at.empty() ? 0 : pass_at.rbegin()->first);
  }
  const bool modelled = !results.empty() && k > 0 && results[0].after.pass_at.count(k) > 0 &&
                        results[0].after.pass_at.at(k).modelled;
  const std::string note = modelled ? " (modelled)" : "";
  std::vector<std::string> header = experiment.header;
  for (const std::string& name : {std::string("valid"), std::string("compiled / correct"),
                                  "fast_1 / fast_2" + note, std::string("correct, one sample"),
                                  "mean speedup, one sample" + note, std::string("fused plans")}) {
    header.push_back(name);
  }
  const auto cells = [&](std::vector<std::string> row, const EvaluationResult& result) {
    auto best = result.pass_at.find(k);
    auto mean = result.pass_at.find(1);
    if (best == result.pass_at.end() || mean == result.pass_at.end()) return row;
    const Metrics& m = best->second;
    row.push_back(Percent(m.valid));
    row.push_back(Percent(m.compiled) + " / " + Percent(m.correct));
    row.push_back(Percent(m.fast_1) + " / " + Percent(m.fast_2));
    row.push_back(Percent(mean->second.correct));
    row.push_back(absl::StrFormat("%.2fx", mean->second.mean_speedup));
    row.push_back(Percent(result.fused_share));
    return row;
  };
  std::vector<std::vector<std::string>> rows;
  if (!results.empty()) rows.push_back(cells({"before training", "-"}, results[0].before));
  for (size_t i = 0; i < experiment.arms.size(); ++i) {
    rows.push_back(i < results.size() ? cells(experiment.arms[i].row, results[i].after)
                                      : experiment.arms[i].row);
  }
  std::string text =
      absl::StrCat("# ", experiment.title, "\n\n", MarkdownTable(header, rows), "\n");
  absl::StrAppend(&text, "All but the last three columns are pass@", k,
                  " in %, from held-out tasks; one training each");
  if (!options.overrides.empty()) {
    absl::StrAppend(&text, " with ", absl::StrJoin(options.overrides, ", "));
  }
  absl::StrAppend(&text,
                  ". One training each cannot rank rewards whose results lie close "
                  "together: repeat with other seeds before concluding.\n");
  if (modelled) {
    absl::StrAppend(&text,
                    "Speedups are modelled from counted bytes and operations; no GPU "
                    "executed these kernels.\n");
  }
  return text;
}

}  // namespace tritonrl
