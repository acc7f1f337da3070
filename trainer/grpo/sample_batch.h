#ifndef TRITONRL_TRAINER_GRPO_SAMPLE_BATCH_H_
#define TRITONRL_TRAINER_GRPO_SAMPLE_BATCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rollout/engine/engine.h"
#include "tasks/response.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/prompts.h"
#include "trainer/objective/advantage.h"
#include "verify/verdict/verdict.pb.h"

// Samples with their verdicts in three forms: in memory, as the learner's batch, and as JSON lines.

namespace tritonrl {

// One response with its verdict.
struct VerifiedSample {
  Sample sample;
  std::string text;  // decoded, special tokens kept
  int plan_end = 0;  // tokens [0, plan_end) are plan tokens
  PlanKind plan_kind = PlanKind::kOther;
  Verdict verdict;
  bool generated = false;
  bool verified = false;
};

// One prompt and its samples.
struct SampleGroup {
  std::shared_ptr<const PreparedTask> task;
  int slot = 0;  // index of the prompt over all ranks; part of the random key
  SamplingSettings sampling;
  std::vector<VerifiedSample> samples;
};

// Prompts and their samples. SampleRunner sets the samples as they are generated and verified.
struct SampleBatch {
  std::string name;   // e.g. "step 12", for messages and keys of verdicts
  uint64_t seed = 0;  // SampleKey::run_seed
  uint64_t step = 0;  // SampleKey::step
  std::vector<SampleGroup> groups;
  // False if another rollout of the same step may give other samples (async rollout). An
  // infrastructure error is then not journalled, as it would belong to another sample.
  bool reproducible = true;

  // Updated by SampleRunner.
  ResponseStyle style;  // how the responses are read
  int num_samples = 0;
  int generated = 0;
  int verified = 0;
  int64_t generated_tokens = 0;
  int cache_hits = 0;
  int infra_errors = 0;
  absl::Time started = absl::InfinitePast();
  absl::Time all_generated = absl::InfinitePast();
  absl::Time all_verified = absl::InfinitePast();
};

// Builds the learner's batch with rewards and advantages, in the order of `batch`. A sample whose
// verdict is an infrastructure error is not counted: it has no gradient and no effect on its
// group's mean.
RlBatch BuildRlBatch(const SampleBatch& batch, const ObjectiveConfig& objective);

// The batch's first infrastructure error as "task level1/3_relu: <message>"; empty if there is
// none.
std::string FirstInfraError(const SampleBatch& batch);

// A sample in the form stored in samples/*.jsonl and sent to rank 0. JSON fields: slot, sample,
// task, level (if known), prompt (first sample of a group only), response, response_style and
// code_block (tasks/response_style.h), tokens, plan_tokens, finish_reason, plan_kind, reward_plan,
// reward_code, advantage_plan, advantage_code (training steps only), verdict (see
// verify/verdict/verdict.proto).
struct SampleRecord {
  int slot = 0;
  int index = 0;
  std::string task_id;
  int level = 0;  // of the task; 0: unknown
  std::string prompt;
  std::string response;
  ResponseStyle style;
  int tokens = 0;
  int plan_tokens = 0;
  std::string finish_reason;
  PlanKind plan_kind = PlanKind::kOther;
  bool trained = false;  // the four numbers below are set
  double reward_plan = 0;
  double reward_code = 0;
  double advantage_plan = 0;
  double advantage_code = 0;
  Verdict verdict;
};

// The records of all samples of a batch, in order. `rl` is the same batch with its rewards, or
// null.
std::vector<SampleRecord> MakeRecords(const SampleBatch& batch, const RlBatch* rl);

// The JSON object of a record on one line, and its inverse. DataLoss: `line` is not such an
// object.
std::string RecordToJson(const SampleRecord& record);
absl::StatusOr<SampleRecord> RecordFromJson(const std::string& line);

// Parses the texts of several ranks (RecordsToText) and returns their records ordered by (slot,
// sample). DataLoss for an invalid line.
absl::StatusOr<std::vector<SampleRecord>> MergeRecords(const std::vector<std::string>& texts);

// One line (RecordToJson) per record.
std::string RecordsToText(const std::vector<SampleRecord>& records);

// "fused", "split", "single", "other".
const char* PlanKindName(PlanKind kind);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_SAMPLE_BATCH_H_
