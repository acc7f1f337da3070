#include "trainer/grpo/evaluator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/random.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// Keeps the draws of evaluations apart from those of training steps.
constexpr uint64_t kEvaluationKey = 0x6576616cu;

}  // namespace

Evaluator::Evaluator(EvaluatorOptions options,
                     std::vector<std::shared_ptr<const PreparedTask>> tasks, SampleRunner* runner,
                     DataParallel* ranks)
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

absl::Status Evaluator::WaitJudged(const Pending& pending, absl::Time deadline,
                                   const std::function<bool()>& keep_going) {
  for (const auto& batch : {pending.sampled, pending.greedy}) {
    RETURN_IF_ERROR(runner_->Wait(batch, SampleRunner::Stage::kJudged, deadline, keep_going));
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

}  // namespace tritonrl
