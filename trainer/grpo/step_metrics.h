// The figures of one training step: a line of metrics.jsonl and the line a person sees.
#ifndef TRITONRL_TRAINER_GRPO_STEP_METRICS_H_
#define TRITONRL_TRAINER_GRPO_STEP_METRICS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/metrics_log.h"
#include "parallel/data_parallel.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/learner.h"
#include "trainer/rl_batch.h"

namespace tritonrl {

// What was learned before the last sample was judged (learn_early).
struct LearnedEarly {
  int64_t samples = 0;  // that went through the model
  double seconds = 0;
};

// The step on this rank's clock.
struct StepClock {
  absl::Time began;
  absl::Time ended;
  bool ahead = false;  // sampling.ahead
  LearnedEarly early;
};

// Means are over samples of all ranks that were judged (faults of ours left out). Times are those
// of the slowest rank.
struct StepMetrics {
  double reward_plan = 0;
  double reward_code = 0;
  double valid_rate = 0;
  double compiled_rate = 0;
  double correct_rate = 0;
  double mean_speedup = 0;  // not clipped; 0 for samples that are not correct
  double fused_rate = 0;    // fused / (fused + split) plans
  double mean_tokens = 0;   // of a response
  double truncated_rate = 0;
  double cache_hit_rate = 0;
  int64_t samples = 0;
  int64_t faults_of_ours = 0;
  bool modelled = false;
  double stale_token_rate = 0;    // tokens from older weights than those that learn from them
  double tokens_per_s = 0;        // generated, over seconds_rollout; with sampling.ahead, where
                                  // rollout goes on while others learn, over seconds_step
  double seconds_rollout = 0;     // until the last sample was generated
  double seconds_verify = 0;      // from then until the last verdict: what overlap did not hide
  double seconds_verify_run = 0;  // all time spent in workers, on all samples together
  double seconds_learn = 0;       // after the last verdict
  LearnedEarly early;             // before it
  double seconds_step = 0;
  LearnStats learn;
};

// Sums over the ranks; every rank must call it. `rl` holds the rewards of `batch`.
absl::Status GatherStepMetrics(const SampleBatch& batch, const RlBatch& rl, const LearnStats& learn,
                               const StepClock& clock, DataParallel* ranks, StepMetrics* metrics);

MetricFields StepFields(const StepMetrics& metrics);

// "reward plan 0.85 code 0.52 | valid 80% ...", what stands behind the progress bar.
std::string StepLine(const StepMetrics& metrics);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_STEP_METRICS_H_
