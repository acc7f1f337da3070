#include "trainer/grpo/step_learning.h"

#include <optional>

#include "absl/time/time.h"
#include "base/status.h"
#include "trainer/log_prob_pass.h"

namespace tritonrl {
namespace {

absl::StatusOr<LearnStats> LearnFrom(int64_t done, RlBatch* batch, RunParts* parts) {
  if (parts->reference != nullptr) RETURN_IF_ERROR(parts->reference->Fill(batch));
  if (NeedsProximal(parts->config.objective())) {
    RETURN_IF_ERROR(
        FillLogProbs({.transformer = parts->policy.transformer.get(),
                      .device = parts->policy.device(),
                      .micro_batch_tokens = parts->learner->options().micro_batch_tokens,
                      .temperature = parts->config.sampling().temperature(),
                      .policy = "policy before its update"},
                     &RlSample::proximal_log_probs, batch));
  }
  return parts->learner->Learn(*batch, done);
}

// On ranks of which some learn and the others generate.
absl::StatusOr<LearnStats> LearnApart(const SampleBatch& samples, int64_t done,
                                      const RlBatch& generated,
                                      std::optional<Engine::OldCache> pause, RunParts* parts) {
  RankRoles& roles = *parts->roles;
  ASSIGN_OR_RETURN(RlBatch batch, roles.ToLearners(generated, samples));
  LearnStats stats;
  if (roles.learns()) {
    ASSIGN_OR_RETURN(stats, LearnFrom(done, &batch, parts));
  }
  // Those that generate wait here while the others learn.
  RETURN_IF_ERROR(roles.AwaitOthers(absl::Seconds(parts->config.step_timeout_s())));
  RETURN_IF_ERROR(roles.ToGenerators(static_cast<uint64_t>(done) + 1,
                                     {.changed = stats.optimizer_steps > 0, .pause = pause},
                                     parts->engine.get()));
  return stats;
}

}  // namespace

absl::StatusOr<LearnStats> LearnStep(const SampleBatch& samples, const LearnMoment& moment,
                                     RlBatch* batch, RunParts* parts) {
  std::optional<Engine::OldCache> pause;
  if (moment.ahead) {
    pause = parts->config.sampling().keep_old_cache() ? Engine::OldCache::kKeep
                                                      : Engine::OldCache::kForget;
  }
  if (parts->roles->split()) return LearnApart(samples, moment.done, *batch, pause, parts);
  Engine& engine = *parts->engine;
  RETURN_IF_ERROR(pause.has_value() ? engine.PauseForWeightUpdate(*pause)
                                    : engine.BeginWeightUpdate());
  absl::StatusOr<LearnStats> stats =
      moment.early != nullptr ? moment.early->Finish() : LearnFrom(moment.done, batch, parts);
  engine.EndWeightUpdate(static_cast<uint64_t>(moment.done) + 1);
  return stats;
}

}  // namespace tritonrl
