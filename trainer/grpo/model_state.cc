#include "trainer/grpo/model_state.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "rollout/distributed/tensor_parallel.h"
#include "rollout/factory/make_engine.h"
#include "trainer/learner/recompute_plan.h"

namespace tritonrl {

namespace {

LearnerOptions MakeLearnerOptions(const GrpoHrdConfig& config, const TrainingRun& run) {
  LearnerOptions options;
  options.objective = config.objective();
  options.optimizer = config.optimizer();
  options.micro_batch_tokens = run.micro_batch_tokens();
  options.temperature = config.sampling().temperature();
  options.seed = config.seed();
  options.total_steps = config.steps();
  options.nonfinite_gradients = run.NonFiniteGradientDir();
  return options;
}

}  // namespace

absl::StatusOr<ModelState> LoadModelState(const GrpoHrdConfig& config, ProcessGroup* ranks,
                                          RankPlacement* placement, TrainingRun* run) {
  RETURN_IF_ERROR(run->LoadPolicy());
  const Policy& policy = run->policy();
  ModelState model{.policy = &policy, .placement = placement};
  RETURN_IF_ERROR(placement->InitWeightSync(policy.weights));
  run->startup_timer().EndPhase("weight sync setup");
  const LearnerOptions options = MakeLearnerOptions(config, *run);
  if (placement->learns() && config.objective().kl_coefficient() > 0) {
    model.reference = std::make_unique<ReferencePolicy>(
        policy, run->threads(), options.micro_batch_tokens, options.temperature);
  }
  const bool sleeps = config.sampling().engine().enable_sleep_mode();
  if (placement->generates()) {
    EngineContext context = {.max_length = int64_t{config.sampling().max_prompt_tokens()} +
                                           config.sampling().max_response_tokens(),
                             .cpu_threads = run->threads()};
    if (sleeps) {
      context.spare_bytes = TrainingStateBytes(config.optimizer().zero_stage(), policy, *ranks);
    }
    ASSIGN_OR_RETURN(model.engine, StartEngine(policy, config.sampling().engine(), context));
  }
  run->startup_timer().EndPhase("engine");
  if (!placement->learns()) return model;
  // The recompute plan includes the memory that the engine frees by sleeping during learning.
  if (sleeps) RETURN_IF_ERROR(model.engine->BeginWeightUpdate());
  RETURN_IF_ERROR(run->MakeOptimizer(config.sampling().max_prompt_tokens() +
                                     config.sampling().max_response_tokens()));
  model.learner =
      std::make_unique<Learner>(options, &policy, run->optimizer(), placement->learners());
  if (sleeps) model.engine->EndWeightUpdate(0);
  return model;
}

absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const Policy& policy,
                                                    const EngineConfig& config,
                                                    const EngineContext& context,
                                                    ProcessGroup* tensor_parallel_group) {
  if (context.max_length > policy.config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_prompt_tokens + max_response_tokens = ", context.max_length, ", but the policy in ",
        policy.folder, " was made for ", policy.config.max_positions,
        " positions (max_position_embeddings); lower one of the two"));
  }
  if (tensor_parallel_group == nullptr) return MakeBatchedEngine(policy.weights, config, context);
  return MakeTensorParallelEngine(policy.weights, config, context, tensor_parallel_group);
}

SamplingSettings MakeSamplingSettings(const SamplingConfig& config, const Policy& policy) {
  SamplingSettings settings;
  settings.temperature = config.temperature();
  settings.top_p = config.top_p();
  settings.top_k = config.top_k();
  settings.max_tokens = config.max_response_tokens();
  settings.stop_ids = policy.stop_tokens;
  return settings;
}

}  // namespace tritonrl
