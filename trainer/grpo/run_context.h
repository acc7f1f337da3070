// All parts of a run of GRPO-HRD, loaded and connected.
#ifndef TRITONRL_TRAINER_GRPO_RUN_CONTEXT_H_
#define TRITONRL_TRAINER_GRPO_RUN_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/run_dir.h"
#include "parallel/process_group.h"
#include "rollout/engine/engine.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/evaluator.h"
#include "trainer/grpo/prompts.h"
#include "trainer/grpo/rank_placement.h"
#include "trainer/grpo/run_paths.h"
#include "trainer/grpo/sample_runner.h"
#include "trainer/grpo/verification.h"
#include "trainer/learner/learner.h"
#include "trainer/learner/log_probs.h"
#include "trainer/learner/policy.h"
#include "trainer/optimizer/adamw.h"
#include "trainer/program/startup_timer.h"

namespace tritonrl {

// In the order of construction; members use only those above them.
struct GrpoRunContext {
  GrpoHrdConfig config;
  ProcessGroup* ranks = nullptr;
  std::unique_ptr<RankPlacement> placement;
  RunPaths paths;
  std::unique_ptr<RunDir> run_dir;  // rank 0 only
  Verification verification;
  Policy policy;
  std::unique_ptr<AdamW> optimizer;            // null on a rank that only generates
  std::unique_ptr<ReferencePolicy> reference;  // null there and without KL penalty
  std::unique_ptr<Engine> engine;              // null on a rank that only learns
  std::unique_ptr<Learner> learner;            // null on a rank that only generates
  std::optional<PromptSampler> prompts;
  std::unique_ptr<InfraErrorJournal> infra_errors;
  std::unique_ptr<SampleRunner> runner;
  std::unique_ptr<Evaluator> evaluator;
  int held_out_tasks = 0;
  int training_tasks = 0;
  StartupTimer startup_timer;
  std::string memory_plan;         // in words; "" without a limit
  std::vector<std::string> notes;  // task files left out and the like, for the person
};

// Opens the run folder (rank 0) and loads everything. Errors name the file, field or task.
absl::StatusOr<std::unique_ptr<GrpoRunContext>> LoadGrpoRunContext(const GrpoHrdConfig& config,
                                                                   ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_RUN_CONTEXT_H_
