#include "trainer/grpo/evaluation_scheduler.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/progress.h"
#include "base/status.h"
#include "parallel/zero_shard_plan.h"

namespace tritonrl {
namespace {

// A progress bar over the samples of an evaluation, on rank 0.
class SampleBar {
 public:
  SampleBar(const ProcessGroup& ranks, const Evaluator::Pending& pending) : pending_(pending) {
    if (!ranks.is_root()) return;
    ProgressOptions options;
    options.label = absl::StrCat("evaluation after ", pending.step, " steps");
    options.total = pending.num_samples();
    bar_ = std::make_unique<Progress>(options);
  }
  void Tick() {
    if (bar_ == nullptr) return;
    bar_->Tick(pending_.verified(),
               absl::StrCat("generated ", pending_.generated(), "/", pending_.num_samples()));
  }

 private:
  const Evaluator::Pending& pending_;
  std::unique_ptr<Progress> bar_;
};

// Exchanges bucket by bucket, so that the temporary copy is small.
void ExchangeContents(const at::Tensor& a, const at::Tensor& b) {
  const ZeroShardPlan pieces(a.numel(), /*ranks=*/1);
  for (int64_t i = 0; i < pieces.buckets(); ++i) {
    const FlatRange piece = pieces.Bucket(i);
    const at::Tensor in_a = a.narrow(0, piece.begin, piece.size());
    const at::Tensor in_b = b.narrow(0, piece.begin, piece.size());
    const at::Tensor before = in_b.clone();
    in_b.copy_(in_a);
    in_a.copy_(before);
  }
}

}  // namespace

EvaluationScheduler::EvaluationScheduler(const GrpoHrdConfig& config, std::string dir,
                                         ProcessGroup* ranks, ModelState* model,
                                         Evaluator* evaluator, InfraErrorJournal* infra_errors,
                                         Hooks hooks)
    : config_(config),
      ranks_(*ranks),
      model_(*model),
      evaluator_(*evaluator),
      infra_errors_(*infra_errors),
      hooks_(std::move(hooks)),
      log_({std::move(dir)}) {}

bool EvaluationScheduler::Due(int64_t done) const {
  const EvalConfig& eval = config_.eval();
  if (evaluator_.num_tasks() == 0 || (eval.samples() == 0 && !eval.greedy())) return false;
  if (done == 0) return eval.at_start();
  if (done == config_.steps()) return eval.at_end();
  return eval.every() > 0 && done % eval.every() == 0;
}

absl::Duration EvaluationScheduler::Timeout() const {
  // The time per sample is that of a training step.
  const double step_samples = config_.prompts_per_step() * config_.group_size();
  const double samples = evaluator_.num_tasks() * (config_.eval().samples() + 1.0);
  return absl::Seconds(config_.step_timeout_s() * std::max(1.0, samples / step_samples));
}

absl::StatusOr<bool> EvaluationScheduler::Evaluate(int64_t done) {
  bool on_file = log_.Find(done) != nullptr;
  ASSIGN_OR_RETURN(on_file, ranks_.Any(on_file));
  if (on_file) return true;
  ASSIGN_OR_RETURN(const Evaluator::Pending pending, evaluator_.Start(done));
  return Finish(pending);
}

void EvaluationScheduler::SaveInitialWeights() {
  has_initial_weights_ = true;
  if (!ranks_.is_root()) return;
  // copy=true also copies CPU weights; `to` copies GPU weights only once.
  kept_weights_ =
      model_.policy->weights->flat().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
}

absl::Status EvaluationScheduler::ExchangeWeights(int64_t version) {
  const at::Tensor& flat = model_.policy->weights->flat();
  if (model_.placement->disaggregated()) {
    if (ranks_.is_root()) ExchangeContents(flat, kept_weights_);
    return model_.placement->SyncWeightsToRollout(static_cast<uint64_t>(version), {},
                                                  model_.engine.get());
  }
  RETURN_IF_ERROR(ranks_.AllReduceStatus(model_.engine->BeginWeightUpdate()));
  if (ranks_.is_root()) ExchangeContents(flat, kept_weights_);
  if (ranks_.size() > 1) {
    const ZeroShardPlan pieces(flat.numel(), /*ranks=*/1);
    for (int64_t i = 0; i < pieces.buckets(); ++i) {
      const FlatRange piece = pieces.Bucket(i);
      RETURN_IF_ERROR(
          ranks_.collectives()->Broadcast(flat.narrow(0, piece.begin, piece.size()), 0));
    }
    RETURN_IF_ERROR(ranks_.collectives()->Wait("the broadcast of weights to be evaluated"));
  }
  model_.engine->EndWeightUpdate(static_cast<uint64_t>(version));
  return absl::OkStatus();
}

absl::StatusOr<bool> EvaluationScheduler::EvaluateInitialPolicy(int64_t done) {
  RETURN_IF_ERROR(ExchangeWeights(0));
  ASSIGN_OR_RETURN(const Evaluator::Pending pending, evaluator_.Start(0));
  absl::Status drawn;
  {
    SampleBar bar(ranks_, pending);
    drawn = evaluator_.WaitGenerated(pending, absl::Now() + Timeout(), [&] {
      bar.Tick();
      return hooks_.keep_going();
    });
  }
  ASSIGN_OR_RETURN(const bool stop, hooks_.any_stop(drawn));
  if (stop) return false;
  RETURN_IF_ERROR(ExchangeWeights(done));
  kept_weights_ = at::Tensor();
  ASSIGN_OR_RETURN(const bool finished, Finish(pending));
  if (finished) has_initial_weights_ = false;
  return finished;
}

absl::StatusOr<bool> EvaluationScheduler::Finish(const Evaluator::Pending& pending) {
  absl::Status verified;
  {
    SampleBar bar(ranks_, pending);
    verified = evaluator_.WaitVerified(pending, absl::Now() + Timeout(), [&] {
      bar.Tick();
      return hooks_.keep_going();
    });
  }
  ASSIGN_OR_RETURN(const bool stop, hooks_.any_stop(verified));
  if (stop) return false;
  ASSIGN_OR_RETURN(const Evaluator::Finished finished, evaluator_.Gather(pending));
  RETURN_IF_ERROR(infra_errors_.Commit());
  if (!ranks_.is_root()) return true;
  RETURN_IF_ERROR(log_.Add(finished));
  hooks_.say(EvaluationLine(finished.result));
  return true;
}

}  // namespace tritonrl
