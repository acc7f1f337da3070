#include "trainer/grpo/step_metrics.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

// Indices into the vector that is summed over the ranks.
enum Sum {
  kSamples,
  kFaults,
  kRewardPlan,
  kRewardCode,
  kValid,
  kCompiled,
  kCorrect,
  kSpeedup,
  kFused,
  kSplit,
  kTokens,
  kTruncated,
  kCached,
  kRunSeconds,
  kModelled,
  kStale,
  kEarly,
  kNumSums,
};

void AddSample(const JudgedSample& judged, const RlSample& rl, double* sums) {
  const Verdict& verdict = judged.verdict;
  sums[kTokens] += static_cast<double>(judged.sample.tokens.size());
  sums[kStale] += rl.stale_end;
  sums[kTruncated] += judged.sample.finish_reason == FinishReason::kLength;
  sums[kFused] += judged.plan_kind == PlanKind::kFused;
  sums[kSplit] += judged.plan_kind == PlanKind::kSplit;
  sums[kCached] += verdict.from_cache();
  if (!verdict.from_cache()) sums[kRunSeconds] += verdict.seconds_run();
  if (IsFaultOfOurs(verdict)) {
    sums[kFaults] += 1;
    return;
  }
  sums[kSamples] += 1;
  sums[kRewardPlan] += rl.reward_plan;
  sums[kRewardCode] += rl.reward_code;
  sums[kValid] += IsValid(verdict);
  sums[kCompiled] += IsCompiled(verdict);
  sums[kCorrect] += IsCorrect(verdict);
  sums[kSpeedup] += SpeedupOf(verdict);
  sums[kModelled] += verdict.modelled();
}

}  // namespace

absl::Status GatherStepMetrics(const SampleBatch& batch, const RlBatch& rl, const LearnStats& learn,
                               const StepClock& clock, DataParallel* ranks, StepMetrics* metrics) {
  double sums[kNumSums] = {};
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    for (size_t i = 0; i < batch.groups[g].samples.size(); ++i) {
      AddSample(batch.groups[g].samples[i], rl[g].samples[i], sums);
    }
  }
  // A batch that was begun ahead may have been ready before.
  const absl::Time generated = std::max(batch.all_generated, clock.began);
  const absl::Time judged = std::max(batch.all_judged, generated);
  double times[5] = {absl::ToDoubleSeconds(generated - clock.began),
                     absl::ToDoubleSeconds(judged - generated), learn.seconds,
                     absl::ToDoubleSeconds(clock.ended - clock.began), clock.early.seconds};
  sums[kEarly] = static_cast<double>(clock.early.samples);
  RETURN_IF_ERROR(ranks->Sum(sums));
  RETURN_IF_ERROR(ranks->Max(times));

  const double n = std::max(1.0, sums[kSamples]);
  const double all = std::max(1.0, sums[kSamples] + sums[kFaults]);
  StepMetrics& m = *metrics;
  m.samples = static_cast<int64_t>(sums[kSamples]);
  m.faults_of_ours = static_cast<int64_t>(sums[kFaults]);
  m.reward_plan = sums[kRewardPlan] / n;
  m.reward_code = sums[kRewardCode] / n;
  m.valid_rate = sums[kValid] / n;
  m.compiled_rate = sums[kCompiled] / n;
  m.correct_rate = sums[kCorrect] / n;
  m.mean_speedup = sums[kSpeedup] / n;
  m.modelled = sums[kModelled] > 0;
  m.fused_rate = sums[kFused] / std::max(1.0, sums[kFused] + sums[kSplit]);
  m.mean_tokens = sums[kTokens] / all;
  m.truncated_rate = sums[kTruncated] / all;
  m.cache_hit_rate = sums[kCached] / all;
  m.seconds_verify_run = sums[kRunSeconds];
  m.seconds_rollout = times[0];
  m.seconds_verify = times[1];
  m.seconds_learn = times[2];
  m.seconds_step = times[3];
  m.early.seconds = times[4];
  m.early.samples = static_cast<int64_t>(sums[kEarly]);
  m.tokens_per_s = sums[kTokens] / std::max(1e-9, clock.ahead ? times[3] : times[0]);
  m.stale_token_rate = sums[kStale] / std::max(1.0, sums[kTokens]);
  m.learn = learn;
  return absl::OkStatus();
}

MetricFields StepFields(const StepMetrics& m) {
  return {{"reward_plan", m.reward_plan},
          {"reward_code", m.reward_code},
          {"valid_rate", m.valid_rate},
          {"compiled_rate", m.compiled_rate},
          {"correct_rate", m.correct_rate},
          {"mean_speedup", m.mean_speedup},
          {"speedup_modelled", m.modelled},
          {"fused_rate", m.fused_rate},
          {"tokens_per_s", m.tokens_per_s},
          {"logprob_max_diff", m.learn.logprob_max_diff},
          {"seconds_rollout", m.seconds_rollout},
          {"seconds_verify", m.seconds_verify},
          {"seconds_learn", m.seconds_learn},
          {"seconds_learn_early", m.early.seconds},
          {"seconds_step", m.seconds_step},
          {"seconds_verify_run", m.seconds_verify_run},
          {"samples", m.samples},
          {"faults_of_ours", m.faults_of_ours},
          {"mean_tokens", m.mean_tokens},
          {"truncated_rate", m.truncated_rate},
          {"cache_hit_rate", m.cache_hit_rate},
          {"loss", m.learn.loss},
          {"gradient_norm", m.learn.gradient_norm},
          {"learning_rate", m.learn.learning_rate},
          {"clip_fraction", m.learn.clip_fraction},
          {"mean_ratio", m.learn.mean_ratio},
          {"entropy", m.learn.entropy},
          {"kl", m.learn.kl},
          {"importance", m.learn.importance},
          {"truncated_fraction", m.learn.truncated_fraction},
          {"stale_token_rate", m.stale_token_rate},
          {"learned_samples", m.learn.samples},
          {"early_samples", m.early.samples},
          {"skipped_samples", m.learn.skipped_samples},
          {"optimizer_steps", m.learn.optimizer_steps},
          {"skipped_steps", m.learn.skipped_steps}};
}

std::string StepLine(const StepMetrics& m) {
  std::string line = absl::StrFormat(
      "reward plan %.2f code %.2f | valid %.0f%% compiled %.0f%% correct %.0f%% | "
      "speedup %.2fx%s fused %.0f%% | %.1fk tok/s | rollout %.1fs verify %.1fs learn %.1fs",
      m.reward_plan, m.reward_code, 100 * m.valid_rate, 100 * m.compiled_rate, 100 * m.correct_rate,
      m.mean_speedup, m.modelled ? " (modelled)" : "", 100 * m.fused_rate, m.tokens_per_s / 1000,
      m.seconds_rollout, m.seconds_verify, m.seconds_learn);
  if (m.early.samples > 0) {
    absl::StrAppendFormat(&line, " (%d of %d samples early, %.1fs)", m.early.samples,
                          m.learn.samples, m.early.seconds);
  }
  if (m.faults_of_ours > 0) {
    absl::StrAppend(&line, " | ", m.faults_of_ours, " left out (our faults)");
  }
  return line;
}

}  // namespace tritonrl
