// Samples with their verdicts as JSON lines: what samples/*.jsonl of a run folder holds, and how
// ranks hand their samples to rank 0.
#ifndef TRITONRL_TRAINER_GRPO_SAMPLE_RECORD_H_
#define TRITONRL_TRAINER_GRPO_SAMPLE_RECORD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/response.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/rl_batch.h"
#include "verify/verdict.pb.h"

namespace tritonrl {

// What is kept of one sample. JSON fields: slot, sample, task, prompt (first sample of a group
// only), response, tokens, plan_tokens, finish_reason, plan_kind, reward_plan, reward_code,
// advantage_plan, advantage_code (training steps only), verdict (see verify/verdict.proto).
struct SampleRecord {
  int slot = 0;
  int index = 0;
  std::string task_id;
  std::string prompt;
  std::string response;
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

// All samples of a batch in order. `rl` (may be null) is the same batch with its rewards.
std::vector<SampleRecord> MakeRecords(const SampleBatch& batch, const RlBatch* rl);

std::string RecordToJson(const SampleRecord& record);
absl::StatusOr<SampleRecord> RecordFromJson(const std::string& line);

// Lines of several ranks, each a text of RecordToJson lines, ordered by (slot, sample).
absl::StatusOr<std::vector<SampleRecord>> MergeRecords(const std::vector<std::string>& texts);

// One line for each record.
std::string RecordsToText(const std::vector<SampleRecord>& records);

// "fused", "split", "single", "other".
const char* PlanKindName(PlanKind kind);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_SAMPLE_RECORD_H_
