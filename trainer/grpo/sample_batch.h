// A set of prompts with all samples wanted for them, filled in as samples end and are judged.
#ifndef TRITONRL_TRAINER_GRPO_SAMPLE_BATCH_H_
#define TRITONRL_TRAINER_GRPO_SAMPLE_BATCH_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rollout/engine.h"
#include "tasks/response.h"
#include "trainer/grpo/prepared_task.h"
#include "verify/verdict.pb.h"

namespace tritonrl {

// One response and what became of it.
struct JudgedSample {
  Sample sample;
  std::string text;  // decoded, special tokens kept
  int plan_end = 0;  // tokens [0, plan_end) are plan
  PlanKind plan_kind = PlanKind::kOther;
  Verdict verdict;
  bool generated = false;
  bool judged = false;
};

// One prompt and its samples, by index.
struct SampleGroup {
  std::shared_ptr<const PreparedTask> task;
  int slot = 0;  // its place among the prompts of all ranks: part of the random key
  SamplingSettings sampling;
  std::vector<JudgedSample> samples;
  // Tokens that its longest sample has at least, kept by the engine; null: nobody asks.
  std::shared_ptr<std::atomic<int>> longest;
};

struct SampleBatch {
  std::string name;   // "step 12": in messages and in the keys of verdicts
  uint64_t seed = 0;  // SampleKey::run_seed
  uint64_t step = 0;  // SampleKey::step
  std::vector<SampleGroup> groups;
  // False: drawn again, its samples may be others, so that a fault of one is not kept for it.
  bool repeatable = true;

  // Kept by SampleRunner.
  int wanted = 0;
  int generated = 0;
  int judged = 0;
  int64_t generated_tokens = 0;
  int cache_hits = 0;
  int faults_of_ours = 0;
  absl::Time started = absl::InfinitePast();
  absl::Time all_generated = absl::InfinitePast();
  absl::Time all_judged = absl::InfinitePast();
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_SAMPLE_BATCH_H_
