#include "trainer/grpo/evaluator.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"

namespace tritonrl {

namespace {

// Gives evaluations other random draws than training steps.
constexpr uint64_t kEvaluationKey = 0x6576616cu;

}  // namespace

Evaluator::Evaluator(EvaluatorOptions options,
                     std::vector<std::shared_ptr<const PreparedTask>> tasks, SampleRunner* runner,
                     ProcessGroup* ranks)
    : options_(std::move(options)), tasks_(std::move(tasks)), runner_(runner), ranks_(ranks) {
  if (options_.share.has_value()) return;
  options_.share.emplace();
  for (int t = ranks_->rank(); t < static_cast<int>(tasks_.size()); t += ranks_->size()) {
    options_.share->push_back(t);
  }
}

std::shared_ptr<SampleBatch> Evaluator::MakeBatch(int64_t step, bool greedy) const {
  auto batch = std::make_shared<SampleBatch>();
  batch->name = absl::StrCat(greedy ? "greedy evaluation " : "evaluation ", step);
  batch->seed = MixKeys({options_.seed, kEvaluationKey, greedy});
  batch->step = static_cast<uint64_t>(step);
  if (greedy ? !options_.greedy : options_.samples == 0) return batch;
  for (const int t : *options_.share) {
    SampleGroup group;
    group.task = tasks_[t];
    group.slot = t;
    group.sampling = options_.sampling;
    if (greedy) {
      group.sampling.temperature = 0;
      group.sampling.top_p = 1;
      group.sampling.top_k = 0;
    }
    batch->groups.push_back(std::move(group));
  }
  return batch;
}

absl::StatusOr<Evaluator::Pending> Evaluator::Start(int64_t step) {
  Pending pending;
  pending.step = step;
  pending.started = absl::Now();
  pending.sampled = MakeBatch(step, /*greedy=*/false);
  pending.greedy = MakeBatch(step, /*greedy=*/true);
  RETURN_IF_ERROR(runner_->Start(pending.sampled, options_.samples));
  RETURN_IF_ERROR(runner_->Start(pending.greedy, 1));
  return pending;
}

absl::Status Evaluator::WaitGenerated(const Pending& pending, absl::Time deadline,
                                      const std::function<bool()>& keep_going) {
  for (const auto& batch : {pending.sampled, pending.greedy}) {
    RETURN_IF_ERROR(runner_->Wait(batch, SampleRunner::Stage::kGenerated, deadline, keep_going));
  }
  return absl::OkStatus();
}

absl::Status Evaluator::WaitVerified(const Pending& pending, absl::Time deadline,
                                     const std::function<bool()>& keep_going) {
  for (const auto& batch : {pending.sampled, pending.greedy}) {
    RETURN_IF_ERROR(runner_->Wait(batch, SampleRunner::Stage::kVerified, deadline, keep_going));
  }
  return absl::OkStatus();
}

absl::StatusOr<Evaluator::Finished> Evaluator::Gather(const Pending& pending) {
  Finished finished;
  for (bool greedy : {false, true}) {
    const SampleBatch& batch = greedy ? *pending.greedy : *pending.sampled;
    ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                     ranks_->AllGather(RecordsToText(MakeRecords(batch, nullptr))));
    ASSIGN_OR_RETURN((greedy ? finished.greedy : finished.sampled), MergeRecords(texts));
  }
  ASSIGN_OR_RETURN(finished.result, Summarise(finished.sampled, finished.greedy));
  finished.result.step = pending.step;
  finished.result.temperature = options_.sampling.temperature;
  finished.result.seconds = absl::ToDoubleSeconds(absl::Now() - pending.started);
  return finished;
}

absl::Status EvaluationLog::Open(int64_t done) {
  results_.clear();
  const auto keep = [&](const Line& line) -> absl::StatusOr<bool> {
    if (!IsBeforeStep(line.text, done == 0 ? 0 : done + 1)) return false;
    ASSIGN_OR_RETURN(EvaluationResult result, EvaluationFromJson(line.text));
    results_[result.step] = std::move(result);
    return true;
  };
  ASSIGN_OR_RETURN(journal_, JsonlJournal::Open(paths_.Evaluations(), JsonlJournal::kMaxLineBytes,
                                                keep, JsonlJournal::Lock::kNone));
  return absl::OkStatus();
}

const EvaluationResult* EvaluationLog::Find(int64_t step) const {
  auto it = results_.find(step);
  return it == results_.end() ? nullptr : &it->second;
}

absl::Status EvaluationLog::Add(const Evaluator::Finished& finished) {
  const EvaluationResult& result = finished.result;
  for (bool greedy : {false, true}) {
    const std::vector<SampleRecord>& records = greedy ? finished.greedy : finished.sampled;
    if (records.empty()) continue;
    RETURN_IF_ERROR(
        WriteFileAtomic(paths_.EvaluationSamples(result.step, greedy), RecordsToText(records)));
  }
  RETURN_IF_ERROR(journal_->Append(MetricsLine(result.step, EvaluationFields(result))));
  results_[result.step] = result;
  return absl::OkStatus();
}

std::string EvaluationLine(const EvaluationResult& result) {
  std::string line = absl::StrCat("Held-out tasks after ", result.step, " steps:");
  auto mean = result.pass_at.find(1);
  if (mean != result.pass_at.end()) {
    absl::StrAppendFormat(&line, " valid %.1f%% compiled %.1f%% correct %.1f%% fused %.1f%%",
                          100 * mean->second.valid, 100 * mean->second.compiled,
                          100 * mean->second.correct, 100 * result.fused_share);
    absl::StrAppendFormat(&line, " speedup %.2fx%s", mean->second.mean_speedup,
                          mean->second.modelled ? " (modelled)" : "");
  }
  if (result.has_greedy) {
    absl::StrAppendFormat(&line, " greedy correct %.1f%%", 100 * result.greedy.correct);
  }
  if (result.levels.size() > 1) {
    for (const auto& [level, metrics] : result.levels) {
      const auto of_level = metrics.pass_at.find(1);
      absl::StrAppendFormat(
          &line, " level %d correct %.1f%%", level,
          100 * (of_level != metrics.pass_at.end() ? of_level->second : metrics.greedy).correct);
    }
  }
  absl::StrAppendFormat(&line, " (%.0fs)", result.seconds);
  return line;
}

}  // namespace tritonrl
