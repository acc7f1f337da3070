#include "trainer/grpo/model_state.h"

#include "base/status.h"
#include "trainer/grpo/engine_setup.h"
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
  // The recomputation plan counts on the memory that the engine releases while the learner works.
  if (sleeps) RETURN_IF_ERROR(model.engine->BeginWeightUpdate());
  RETURN_IF_ERROR(run->MakeOptimizer(config.sampling().max_prompt_tokens() +
                                     config.sampling().max_response_tokens()));
  model.learner =
      std::make_unique<Learner>(options, &policy, run->optimizer(), placement->learners());
  if (sleeps) model.engine->EndWeightUpdate(0);
  return model;
}

}  // namespace tritonrl
