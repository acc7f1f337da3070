// All parts of a run of GRPO-HRD, loaded and connected.
#ifndef TRITONRL_TRAINER_GRPO_RUN_PARTS_H_
#define TRITONRL_TRAINER_GRPO_RUN_PARTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/run_dir.h"
#include "parallel/data_parallel.h"
#include "rollout/engine.h"
#include "trainer/adamw.h"
#include "trainer/config.pb.h"
#include "trainer/grpo/evaluator.h"
#include "trainer/grpo/fault_journal.h"
#include "trainer/grpo/learner_stream.h"
#include "trainer/grpo/prompt_sampler.h"
#include "trainer/grpo/rank_roles.h"
#include "trainer/grpo/reference_policy.h"
#include "trainer/grpo/run_paths.h"
#include "trainer/grpo/sample_runner.h"
#include "trainer/grpo/verification.h"
#include "trainer/learner.h"
#include "trainer/policy.h"
#include "trainer/start_up.h"

namespace tritonrl {

// In the order of construction; members use only those above them.
struct RunParts {
  GrpoHrdConfig config;
  DataParallel* ranks = nullptr;
  std::unique_ptr<RankRoles> roles;
  RunPaths paths;
  std::unique_ptr<RunDir> run_dir;  // rank 0 only
  Verification verification;
  Policy policy;
  std::unique_ptr<AdamW> optimizer;             // null on a rank that only generates
  std::unique_ptr<ReferencePolicy> reference;   // null there and without KL penalty
  std::unique_ptr<Engine> engine;               // null on a rank that only learns
  std::unique_ptr<Learner> learner;             // null on a rank that only generates
  std::optional<LearnerStream> learner_stream;  // with learn_early
  std::optional<PromptSampler> prompts;
  std::unique_ptr<FaultJournal> faults;
  std::unique_ptr<SampleRunner> runner;
  std::unique_ptr<Evaluator> evaluator;
  int held_out_tasks = 0;
  int training_tasks = 0;
  StartUp start_up;
  std::string node_sums;           // how sums go over several nodes, in words; "" on one
  std::string memory_plan;         // in words; "" without a limit
  std::vector<std::string> notes;  // task files left out and the like, for the person

  SamplingSettings TrainingSampling() const;
};

// Opens the run folder (rank 0) and loads everything. Errors name the file, field or task.
absl::StatusOr<std::unique_ptr<RunParts>> LoadRunParts(const GrpoHrdConfig& config,
                                                       DataParallel* ranks);

// The style that the configuration names.
PromptStyle StyleOf(const TasksConfig& tasks);

// What a generation engine needs, apart from the policy.
struct EngineSetup {
  int slots = 64;  // most sequences at a time
  int max_prompt_tokens = 512;
  int max_response_tokens = 640;
  double cache_gib = 0;     // 0: as TransformerRunner chooses
  int max_step_tokens = 0;  // likewise
  int max_guesses = 0;      // SamplingConfig's
  bool batch_invariant = false;
  bool fp8_cache = false, fp8_weights = false;
  bool release_memory = false;  // likewise
  int64_t spare_bytes = 0;      // EngineOptions'
  int threads = 0;              // on the CPU; 0: all
};
// Shares the policy's weights. Error: prompt and response do not fit the model's positions.
// `spread`: the ranks over which the policy is spread, see MakeTensorParallelEngine; null: it is
// whole.
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const Policy& policy, const EngineSetup& setup,
                                                    DataParallel* spread = nullptr);

// All tokens that end a response.
std::vector<int32_t> StopTokens(const Policy& policy);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_RUN_PARTS_H_
