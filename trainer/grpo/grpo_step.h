#ifndef TRITONRL_TRAINER_GRPO_GRPO_STEP_H_
#define TRITONRL_TRAINER_GRPO_GRPO_STEP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/jsonl.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/model_state.h"
#include "trainer/grpo/prompts.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/grpo/sample_runner.h"
#include "trainer/learner/learner.h"
#include "trainer/objective/advantage.h"

// One training step of GRPO: rollout, update of the weights and metrics.

namespace tritonrl {

// Starts the rollouts of training steps, with async rollout one step ahead.
class StepRollout {
 public:
  // All references must outlive this object.
  StepRollout(const GrpoHrdConfig& config, const ModelState& model, const PromptSampler& prompts,
              SampleRunner* runner)
      : config_(config), model_(model), prompts_(prompts), runner_(runner) {}

  // After `done` completed steps: starts this rank's share of the next step's samples, unless they
  // are in flight, and returns them. With `start_next` it also starts the samples of the step after
  // it, which use batch slots that become idle.
  absl::StatusOr<std::shared_ptr<SampleBatch>> Start(int64_t done, bool start_next);

  // Whether samples of the step after the one started last are in flight.
  bool next_started() const { return next_ != nullptr; }

 private:
  absl::StatusOr<std::shared_ptr<SampleBatch>> Begin(int64_t step);

  const GrpoHrdConfig& config_;
  const ModelState& model_;
  const PromptSampler& prompts_;
  SampleRunner* const runner_;
  std::shared_ptr<SampleBatch> next_;
};

struct LearnStepOptions {
  int64_t done = 0;            // completed steps
  bool async_rollout = false;  // samples of the next step are being generated
};

// Learns from `batch`, the rewarded `samples`, and gives the engines the new weights, whose version
// is moment.done + 1. Called by all ranks together. On a rank that both generates and learns the
// engine pauses meanwhile. Sets the log-probabilities of the reference and the proximal policy if
// the objective needs them. The statistics are valid on the ranks that learn.
absl::StatusOr<LearnStats> LearnStep(const SampleBatch& samples, const LearnStepOptions& moment,
                                     const GrpoHrdConfig& config, RlBatch* batch,
                                     ModelState* model);

// Begin and end of a step on this rank's clock.
struct StepClock {
  absl::Time began;
  absl::Time ended;
  bool async_rollout = false;  // sampling.async_rollout
};

// The highest level that is reported apart.
inline constexpr int kMaxMetricLevel = 9;

// Metrics of a step's samples whose task has one level.
struct LevelMetrics {
  int64_t samples = 0;
  double valid_rate = 0;
  double correct_rate = 0;
  double mean_speedup = 0;  // as in StepMetrics
};

// Metrics of a step. Means are over the verified samples of all ranks, without infrastructure
// errors. Times are those of the slowest rank.
struct StepMetrics {
  double reward_plan = 0;
  double reward_code = 0;
  double valid_rate = 0;
  double compiled_rate = 0;
  double correct_rate = 0;
  double mean_speedup = 0;  // not clipped; 0 for samples that are not correct
  double fused_rate = 0;    // fused / (fused + split) plans
  double mean_tokens = 0;   // mean length of a response
  double truncated_rate = 0;
  double cache_hit_rate = 0;
  int64_t samples = 0;
  int64_t infra_errors = 0;
  bool modelled = false;
  // Passes over the training tasks after this step; 0 if all tasks are composed anew.
  double epoch = 0;
  // By level; a level without a verified sample is left out.
  std::map<int, LevelMetrics> levels;
  double stale_token_rate = 0;    // share of tokens from weights older than the learner's
  double tokens_per_s = 0;        // generated tokens per second of seconds_rollout; with
                                  // async rollout, which overlaps learning, of seconds_step
  double seconds_rollout = 0;     // until the last sample is generated
  double seconds_verify = 0;      // from then to the last verdict: the part not overlapped
  double seconds_verify_run = 0;  // worker time, summed over all samples
  double seconds_learn = 0;
  double seconds_step = 0;
  LearnStats learn;
};

// Computes the metrics but `epoch` over all ranks; called by all ranks together. `rl` holds the
// rewards of `batch`.
absl::Status GatherStepMetrics(const SampleBatch& batch, const RlBatch& rl, const LearnStats& learn,
                               const StepClock& clock, ProcessGroup* ranks, StepMetrics* metrics);

// The line of metrics.jsonl; figures of level 1 begin with "level1_".
MetricFields StepFields(const StepMetrics& metrics);

// The text behind the progress bar: "reward plan 0.85 code 0.52 | valid 80% ...".
std::string StepLine(const StepMetrics& metrics);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_GRPO_STEP_H_
