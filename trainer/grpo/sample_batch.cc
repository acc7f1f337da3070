#include "trainer/grpo/sample_batch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "tasks/response_style.h"
#include "trainer/objective/advantage.h"
#include "verify/verdict/metrics.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

namespace {

// Number of tokens that were not drawn from weights `version`; they precede the tokens that were.
int TokensBefore(uint64_t version, const Sample& sample) {
  int64_t tokens = 0;
  for (const WeightVersionSpan& run : sample.versions)
    tokens += run.version == version ? 0 : run.tokens;
  return static_cast<int>(tokens);
}

}  // namespace

RlBatch BuildRlBatch(const SampleBatch& batch, const ObjectiveConfig& objective) {
  RlBatch rl;
  for (const SampleGroup& group : batch.groups) {
    RlGroup out;
    out.task_id = group.task->task.id;
    for (const VerifiedSample& verified : group.samples) {
      RlSample sample;
      sample.prompt = group.task->tokens;
      sample.response = verified.sample.tokens;
      sample.old_log_probs = verified.sample.log_probs;
      sample.plan_end = verified.plan_end;
      sample.stale_end = TokensBefore(batch.step, verified.sample);
      const std::optional<Rewards> rewards =
          ComputeRewards(verified.verdict, objective.speedup_clip());
      sample.counted = rewards.has_value();
      if (rewards.has_value()) {
        sample.reward_correct = rewards->correct;
        sample.reward_speedup = rewards->speedup;
      }
      out.samples.push_back(std::move(sample));
    }
    rl.push_back(std::move(out));
  }
  FillAdvantages(objective, &rl);
  return rl;
}

std::string FirstInfraError(const SampleBatch& batch) {
  for (const SampleGroup& group : batch.groups) {
    for (const VerifiedSample& verified : group.samples) {
      if (verified.verified && IsInfraError(verified.verdict)) {
        return absl::StrCat("task ", group.task->task.id, ": ",
                            verified.verdict.outcome().message());
      }
    }
  }
  return "";
}

namespace {

constexpr PlanKind kPlanKinds[] = {PlanKind::kFused, PlanKind::kSplit, PlanKind::kSingle,
                                   PlanKind::kOther};

}  // namespace

const char* PlanKindName(PlanKind kind) {
  switch (kind) {
    case PlanKind::kFused:
      return "fused";
    case PlanKind::kSplit:
      return "split";
    case PlanKind::kSingle:
      return "single";
    case PlanKind::kOther:
      break;
  }
  return "other";
}

std::vector<SampleRecord> MakeRecords(const SampleBatch& batch, const RlBatch* rl) {
  std::vector<SampleRecord> records;
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const SampleGroup& group = batch.groups[g];
    for (size_t i = 0; i < group.samples.size(); ++i) {
      const VerifiedSample& verified = group.samples[i];
      SampleRecord record;
      record.slot = group.slot;
      record.index = static_cast<int>(i);
      record.task_id = group.task->task.id;
      record.level = group.task->task.level;
      if (i == 0) record.prompt = group.task->prompt;
      record.response = verified.text;
      record.style = batch.style;
      record.tokens = static_cast<int>(verified.sample.tokens.size());
      record.plan_tokens = verified.plan_end;
      record.finish_reason = FinishReasonName(verified.sample.finish_reason);
      record.plan_kind = verified.plan_kind;
      record.verdict = verified.verdict;
      if (rl != nullptr) {
        const RlSample& sample = (*rl)[g].samples[i];
        record.trained = sample.counted;
        record.reward_plan = sample.reward_plan;
        record.reward_code = sample.reward_code;
        record.advantage_plan = sample.advantage_plan;
        record.advantage_code = sample.advantage_code;
      }
      records.push_back(std::move(record));
    }
  }
  return records;
}

std::string RecordToJson(const SampleRecord& record) {
  nlohmann::ordered_json json;
  json["slot"] = record.slot;
  json["sample"] = record.index;
  json["task"] = record.task_id;
  if (record.level > 0) json["level"] = record.level;
  if (!record.prompt.empty()) json["prompt"] = record.prompt;
  json["response"] = record.response;
  json["response_style"] = std::string(PlanStyleName(record.style.plan));
  json["code_block"] = std::string(CodeBlockName(record.style.code_block));
  json["tokens"] = record.tokens;
  json["plan_tokens"] = record.plan_tokens;
  json["finish_reason"] = record.finish_reason;
  json["plan_kind"] = PlanKindName(record.plan_kind);
  if (record.trained) {
    json["reward_plan"] = record.reward_plan;
    json["reward_code"] = record.reward_code;
    json["advantage_plan"] = record.advantage_plan;
    json["advantage_code"] = record.advantage_code;
  }
  json["verdict"] = nlohmann::ordered_json::parse(VerdictToJson(record.verdict));
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::StatusOr<SampleRecord> RecordFromJson(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("verdict")) {
    return absl::DataLossError("a sample record is no JSON object with a verdict");
  }
  SampleRecord record;
  record.slot = json.value("slot", 0);
  record.index = json.value("sample", 0);
  record.task_id = json.value("task", "");
  record.level = json.value("level", 0);
  record.prompt = json.value("prompt", "");
  record.response = json.value("response", "");
  if (json.contains("response_style") || json.contains("code_block")) {
    ASSIGN_OR_RETURN(record.style, ResponseStyleFromNames(json.value("response_style", ""),
                                                          json.value("code_block", "")));
  }
  record.tokens = json.value("tokens", 0);
  record.plan_tokens = json.value("plan_tokens", 0);
  record.finish_reason = json.value("finish_reason", "");
  const std::string kind = json.value("plan_kind", "");
  for (PlanKind candidate : kPlanKinds) {
    if (kind == PlanKindName(candidate)) record.plan_kind = candidate;
  }
  record.trained = json.contains("reward_plan");
  record.reward_plan = json.value("reward_plan", 0.0);
  record.reward_code = json.value("reward_code", 0.0);
  record.advantage_plan = json.value("advantage_plan", 0.0);
  record.advantage_code = json.value("advantage_code", 0.0);
  absl::StatusOr<Verdict> verdict = VerdictFromJson(json["verdict"].dump());
  if (!verdict.ok()) {
    return absl::DataLossError("the verdict of a sample record is not one of this version");
  }
  record.verdict = *std::move(verdict);
  return record;
}

absl::StatusOr<std::vector<SampleRecord>> MergeRecords(const std::vector<std::string>& texts) {
  std::vector<SampleRecord> records;
  for (const std::string& text : texts) {
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      ASSIGN_OR_RETURN(SampleRecord record, RecordFromJson(std::string(line)));
      records.push_back(std::move(record));
    }
  }
  std::stable_sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::pair(a.slot, a.index) < std::pair(b.slot, b.index);
  });
  return records;
}

std::string RecordsToText(const std::vector<SampleRecord>& records) {
  std::string text;
  for (const SampleRecord& record : records) absl::StrAppend(&text, RecordToJson(record), "\n");
  return text;
}

}  // namespace tritonrl
