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

  SamplingSettings TrainingSampling() const;
};

// Opens the run folder (rank 0) and loads everything. Errors name the file, field or task.
absl::StatusOr<std::unique_ptr<GrpoRunContext>> LoadGrpoRunContext(const GrpoHrdConfig& config,
                                                                   ProcessGroup* ranks);

// The style that the configuration names.
PromptStyle PromptStyleFor(const TasksConfig& tasks);

// What a generation engine needs, apart from the policy.
struct EngineSetup {
  int max_num_seqs = 64;  // most sequences at a time
  int max_prompt_tokens = 512;
  int max_response_tokens = 640;
  double kv_cache_gib = 0;         // 0: as TransformerRunner chooses
  int max_num_batched_tokens = 0;  // likewise
  int num_speculative_tokens = 0;  // SamplingConfig's
  bool batch_invariant = false;
  bool fp8_kv_cache = false, fp8_weights = false;
  bool enable_sleep_mode = false;  // likewise
  int64_t spare_bytes = 0;         // EngineOptions'
  int threads = 0;                 // on the CPU; 0: all
};
// Shares the policy's weights. Error: prompt and response do not fit the model's positions.
// `tensor_parallel_group`: the ranks over which the policy is tensor_parallel_group, see
// MakeTensorParallelEngine; null: it is whole.
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const Policy& policy, const EngineSetup& setup,
                                                    ProcessGroup* tensor_parallel_group = nullptr);

// All tokens that end a response.
std::vector<int32_t> StopTokens(const Policy& policy);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_RUN_CONTEXT_H_
