#include "trainer/grpo/grpo_step.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "trainer/grpo/model_state.h"
#include "trainer/learner/log_probs.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

absl::StatusOr<std::shared_ptr<SampleBatch>> StepRollout::Begin(int64_t step) {
  auto batch = std::make_shared<SampleBatch>();
  batch->name = absl::StrCat("step ", step + 1);
  batch->seed = config_.seed();
  batch->step = static_cast<uint64_t>(step);
  batch->reproducible = !config_.sampling().async_rollout();
  const auto tasks = prompts_.Draw(step, config_.prompts_per_step());
  for (const int i : model_.placement->Share(static_cast<int>(tasks.size()))) {
    SampleGroup group;
    group.task = tasks[i];
    if (!tasks[i]->problem.empty()) {
      return absl::UnavailableError(absl::StrCat(tasks[i]->task.id, ": ", tasks[i]->problem));
    }
    group.slot = i;
    group.sampling = MakeSamplingSettings(config_.sampling(), *model_.policy);
    batch->groups.push_back(std::move(group));
  }
  RETURN_IF_ERROR(runner_->Start(batch, config_.group_size()));
  return batch;
}

absl::StatusOr<std::shared_ptr<SampleBatch>> StepRollout::Start(int64_t done, bool start_next) {
  std::shared_ptr<SampleBatch> batch = std::exchange(next_, nullptr);
  if (batch == nullptr) {
    ASSIGN_OR_RETURN(batch, Begin(done));
  }
  // The engine serves requests in order of submission, so these samples do not delay `batch`.
  if (start_next) {
    ASSIGN_OR_RETURN(next_, Begin(done + 1));
  }
  return batch;
}

namespace {

absl::StatusOr<LearnStats> LearnFromBatch(int64_t done, RlBatch* batch, ModelState* model) {
  if (model->reference != nullptr) RETURN_IF_ERROR(model->reference->Fill(batch));
  const LearnerOptions& options = model->learner->options();
  if (NeedsProximalLogProbs(options.objective)) {
    RETURN_IF_ERROR(FillLogProbs({.transformer = model->policy->transformer.get(),
                                  .device = model->policy->device(),
                                  .micro_batch_tokens = options.micro_batch_tokens,
                                  .temperature = options.temperature,
                                  .policy = "proximal policy"},
                                 &RlSample::proximal_log_probs, batch));
  }
  return model->learner->Learn(*batch, done);
}

// LearnStep for a job in which some ranks learn and the other ranks generate.
absl::StatusOr<LearnStats> LearnDisaggregated(const SampleBatch& samples, int64_t done,
                                              const RlBatch& generated,
                                              std::optional<Engine::KvPolicy> pause,
                                              absl::Duration timeout, ModelState* model) {
  RankPlacement& placement = *model->placement;
  ASSIGN_OR_RETURN(RlBatch batch, placement.SendToLearners(generated, samples));
  LearnStats stats;
  if (placement.learns()) {
    ASSIGN_OR_RETURN(stats, LearnFromBatch(done, &batch, model));
  }
  // Generating ranks wait here while the learning ranks learn.
  RETURN_IF_ERROR(placement.WaitForOtherRanks(timeout));
  RETURN_IF_ERROR(placement.SyncWeightsToRollout(
      static_cast<uint64_t>(done) + 1, {.changed = stats.optimizer_steps > 0, .pause = pause},
      model->engine.get()));
  return stats;
}

}  // namespace

absl::StatusOr<LearnStats> LearnStep(const SampleBatch& samples, const LearnStepOptions& moment,
                                     const GrpoHrdConfig& config, RlBatch* batch,
                                     ModelState* model) {
  std::optional<Engine::KvPolicy> pause;
  if (moment.async_rollout) {
    pause = config.sampling().keep_stale_kv_cache() ? Engine::KvPolicy::kKeep
                                                    : Engine::KvPolicy::kInvalidate;
  }
  if (model->placement->disaggregated()) {
    return LearnDisaggregated(samples, moment.done, *batch, pause,
                              absl::Seconds(config.step_timeout_s()), model);
  }
  Engine& engine = *model->engine;
  RETURN_IF_ERROR(pause.has_value() ? engine.PauseForWeightUpdate(*pause)
                                    : engine.BeginWeightUpdate());
  absl::StatusOr<LearnStats> stats = LearnFromBatch(moment.done, batch, model);
  engine.EndWeightUpdate(static_cast<uint64_t>(moment.done) + 1);
  return stats;
}

namespace {

// Indices into the vector that is all-reduced over the ranks.
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
  kFirstLevel,  // of kMaxMetricLevel blocks, one for each level
};
// Indices into the block of a level.
enum LevelSum { kLevelSamples, kLevelValid, kLevelCorrect, kLevelSpeedup, kNumLevelSums };

constexpr int kNumSums = kFirstLevel + kMaxMetricLevel * kNumLevelSums;

int LevelBlock(int level) { return kFirstLevel + (level - 1) * kNumLevelSums; }

void AddSample(const VerifiedSample& verified, const RlSample& rl, int level, double* sums) {
  const Verdict& verdict = verified.verdict;
  sums[kTokens] += static_cast<double>(verified.sample.tokens.size());
  sums[kStale] += rl.stale_end;
  sums[kTruncated] += verified.sample.finish_reason == FinishReason::kLength;
  sums[kFused] += verified.plan_kind == PlanKind::kFused;
  sums[kSplit] += verified.plan_kind == PlanKind::kSplit;
  sums[kCached] += verdict.from_cache();
  if (!verdict.from_cache()) sums[kRunSeconds] += verdict.seconds_run();
  if (IsInfraError(verdict)) {
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
  if (level < 1 || level > kMaxMetricLevel) return;
  double* const block = sums + LevelBlock(level);
  block[kLevelSamples] += 1;
  block[kLevelValid] += IsValid(verdict);
  block[kLevelCorrect] += IsCorrect(verdict);
  block[kLevelSpeedup] += SpeedupOf(verdict);
}

std::map<int, LevelMetrics> LevelsOf(const double* sums) {
  std::map<int, LevelMetrics> levels;
  for (int level = 1; level <= kMaxMetricLevel; ++level) {
    const double* const block = sums + LevelBlock(level);
    const double n = block[kLevelSamples];
    if (n == 0) continue;
    levels[level] = {.samples = static_cast<int64_t>(n),
                     .valid_rate = block[kLevelValid] / n,
                     .correct_rate = block[kLevelCorrect] / n,
                     .mean_speedup = block[kLevelSpeedup] / n};
  }
  return levels;
}

}  // namespace

absl::Status GatherStepMetrics(const SampleBatch& batch, const RlBatch& rl, const LearnStats& learn,
                               const StepClock& clock, ProcessGroup* ranks, StepMetrics* metrics) {
  double sums[kNumSums] = {};
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    for (size_t i = 0; i < batch.groups[g].samples.size(); ++i) {
      AddSample(batch.groups[g].samples[i], rl[g].samples[i], batch.groups[g].task->task.level,
                sums);
    }
  }
  // A batch that was started in the previous step may have ended before this step began.
  const absl::Time generated = std::max(batch.all_generated, clock.began);
  const absl::Time verified = std::max(batch.all_verified, generated);
  double times[4] = {absl::ToDoubleSeconds(generated - clock.began),
                     absl::ToDoubleSeconds(verified - generated), learn.seconds,
                     absl::ToDoubleSeconds(clock.ended - clock.began)};
  RETURN_IF_ERROR(ranks->AllReduce(sums));
  RETURN_IF_ERROR(ranks->AllReduceMax(times));

  const double n = std::max(1.0, sums[kSamples]);
  const double all = std::max(1.0, sums[kSamples] + sums[kFaults]);
  StepMetrics& m = *metrics;
  m.samples = static_cast<int64_t>(sums[kSamples]);
  m.infra_errors = static_cast<int64_t>(sums[kFaults]);
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
  m.tokens_per_s = sums[kTokens] / std::max(1e-9, clock.async_rollout ? times[3] : times[0]);
  m.stale_token_rate = sums[kStale] / std::max(1.0, sums[kTokens]);
  m.levels = LevelsOf(sums);
  m.learn = learn;
  return absl::OkStatus();
}

MetricFields StepFields(const StepMetrics& m) {
  MetricFields fields = {{"reward_plan", m.reward_plan},
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
                         {"seconds_step", m.seconds_step},
                         {"seconds_verify_run", m.seconds_verify_run},
                         {"samples", m.samples},
                         {"infra_errors", m.infra_errors},
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
                         {"skipped_samples", m.learn.skipped_samples},
                         {"optimizer_steps", m.learn.optimizer_steps},
                         {"skipped_steps", m.learn.skipped_steps}};
  if (m.epoch > 0) fields.emplace_back("epoch", m.epoch);
  for (const auto& [level, metrics] : m.levels) {
    const std::string prefix = absl::StrCat("level", level, "_");
    fields.emplace_back(prefix + "samples", metrics.samples);
    fields.emplace_back(prefix + "valid_rate", metrics.valid_rate);
    fields.emplace_back(prefix + "correct_rate", metrics.correct_rate);
    fields.emplace_back(prefix + "mean_speedup", metrics.mean_speedup);
  }
  return fields;
}

std::string StepLine(const StepMetrics& m) {
  std::string line = absl::StrFormat(
      "reward plan %.2f code %.2f | valid %.0f%% compiled %.0f%% correct %.0f%% | "
      "speedup %.2fx%s fused %.0f%% | %.1fk tok/s | rollout %.1fs verify %.1fs learn %.1fs",
      m.reward_plan, m.reward_code, 100 * m.valid_rate, 100 * m.compiled_rate, 100 * m.correct_rate,
      m.mean_speedup, m.modelled ? " (modelled)" : "", 100 * m.fused_rate, m.tokens_per_s / 1000,
      m.seconds_rollout, m.seconds_verify, m.seconds_learn);
  if (m.infra_errors > 0) {
    absl::StrAppend(&line, " | ", m.infra_errors, " dropped (infra errors)");
  }
  return line;
}

}  // namespace tritonrl
