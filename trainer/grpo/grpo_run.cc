#include "trainer/grpo/grpo_run.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/progress.h"
#include "base/status.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/grpo/evaluation_scheduler.h"
#include "trainer/grpo/grpo_step.h"
#include "trainer/grpo/run_context.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/objective/advantage.h"
#include "trainer/report/report_process.h"

namespace tritonrl {
namespace {

// How long the last rendering of the report may take.
constexpr absl::Duration kReportTimeout = absl::Seconds(90);

class GrpoRun {
 public:
  GrpoRun(std::unique_ptr<GrpoRunContext> parts, const SignalHandler& stop)
      : parts_(std::move(parts)),
        config_(parts_->config),
        ranks_(*parts_->ranks),
        placement_(*parts_->placement),
        stop_(stop),
        store_(parts_->paths.Checkpoints(), config_.checkpoint().keep(), placement_.learners()),
        evaluations_(parts_.get(),
                     {.keep_going = [this] { return !Interrupted(); },
                      .any_stop = [this](const absl::Status& s) { return AnyStop(s); },
                      .say = [this](const std::string& line) { Say(line); }}),
        report_(parts_->paths.dir),
        samples_(parts_.get()) {}

  absl::StatusOr<GrpoOutcome> Run();

 private:
  using Stage = SampleRunner::Stage;

  absl::Status Resume();
  absl::Status LoadNewest();
  absl::Status Loop();
  absl::Status Step();
  // Whether samples of the next step may be begun in this one.
  bool StartsNextRollout() const;
  absl::Status Record(const SampleBatch& batch, const RlBatch& rl, const StepMetrics& metrics);
  absl::Status BeginCheckpoint();
  // Waits for it.
  absl::Status SaveWhatIsDone();
  // Passes on what the store says of the checkpoint that was begun last.
  absl::Status Written(const absl::Status& status);
  absl::Status Finish();

  // Whether there is a reason not to wait any longer.
  bool Interrupted() const { return stop_.requested() || !parts_->verification.Health().ok(); }
  // Whether any rank was asked to stop or failed; all ranks call it at the same places.
  absl::StatusOr<bool> AnyStop(const absl::Status& status);
  void Say(const std::string& text);
  // The time left is reckoned from the steps after this call alone: the first one waits for the
  // workers to start, and the evaluation after it is no step.
  void StartProgress();

  std::unique_ptr<GrpoRunContext> parts_;
  const GrpoHrdConfig& config_;
  ProcessGroup& ranks_;
  RankPlacement& placement_;
  const SignalHandler& stop_;
  CheckpointStore store_;
  EvaluationScheduler evaluations_;
  ReportProcess report_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Progress> progress_;  // rank 0 only
  StepRollout samples_;
  int64_t done_ = 0;          // steps
  int64_t saved_ = -1;        // step of the newest checkpoint, perhaps still being written
  bool weights_good_ = true;  // the weights are those after `done_` steps
  bool stopped_ = false;
  absl::Time began_ = absl::Now();
};

void GrpoRun::Say(const std::string& text) {
  if (!ranks_.is_root()) return;
  if (progress_ != nullptr) {
    progress_->Print(text);
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

void GrpoRun::StartProgress() {
  if (!ranks_.is_root()) return;
  ProgressOptions options;
  options.label = "step";
  options.total = config_.steps();
  options.first = done_;
  progress_ = std::make_unique<Progress>(options);
}

absl::StatusOr<bool> GrpoRun::AnyStop(const absl::Status& status) {
  RETURN_IF_ERROR(parts_->verification.Health());
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  // Longer than others wait for their samples: who waits here must not give up first.
  RETURN_IF_ERROR(placement_.WaitForOtherRanks(evaluations_.Timeout() +
                                               absl::Seconds(config_.collective_timeout_s())));
  return ranks_.Any(stop_.requested() || !status.ok());
}

absl::Status GrpoRun::LoadNewest() {
  if (!placement_.learns()) return absl::OkStatus();
  TrainingState expected;
  expected.program = "grpo_hrd";
  expected.seed = config_.seed();
  std::vector<std::string> warnings;
  ASSIGN_OR_RETURN(
      const std::optional<TrainingState> state,
      store_.LoadNewest(expected, &parts_->policy, parts_->optimizer.get(), &warnings));
  for (const std::string& warning : warnings) Say("warning: " + warning);
  if (!state.has_value()) return absl::OkStatus();
  done_ = saved_ = state->step;
  parts_->learner->set_consecutive_skipped(state->consecutive_skipped);
  if (done_ > config_.steps()) {
    return absl::FailedPreconditionError(
        absl::StrCat("run folder ", parts_->paths.dir, " already has ", done_,
                     " steps, more than steps = ", config_.steps()));
  }
  Say(absl::StrCat("Resuming after step ", done_, " of ", config_.steps(), "."));
  return absl::OkStatus();
}

absl::Status GrpoRun::Resume() {
  RETURN_IF_ERROR(LoadNewest());
  if (placement_.disaggregated()) {
    double done = placement_.learns() ? static_cast<double>(done_) : 0;
    RETURN_IF_ERROR(ranks_.AllReduceMax(std::span<double>(&done, 1)));
    done_ = static_cast<int64_t>(done);
    if (done_ > 0)
      RETURN_IF_ERROR(placement_.SyncWeightsToRollout(done_, {}, parts_->engine.get()));
  } else if (done_ > 0) {
    RETURN_IF_ERROR(parts_->engine->BeginWeightUpdate());
    parts_->engine->EndWeightUpdate(static_cast<uint64_t>(done_));
  }
  RETURN_IF_ERROR(ranks_.Barrier());  // nobody writes before all have read
  if (!ranks_.is_root()) return absl::OkStatus();
  ASSIGN_OR_RETURN(metrics_, MetricsLog::Open(parts_->run_dir->metrics_path(), done_ + 1));
  return evaluations_.Open(done_);
}

absl::StatusOr<GrpoOutcome> GrpoRun::Run() {
  for (const std::string& note : parts_->notes) Say("left out: " + note);
  if (!parts_->memory_plan.empty()) {
    Say(std::string(absl::StripSuffix(parts_->memory_plan, "\n")));
  }
  const Policy& policy = parts_->policy;
  Say(absl::StrFormat(
      "GRPO-HRD: %.2fM parameters on %s; %d training tasks, %d held out; %d steps of %d prompts x "
      "%d samples; %s.\nRun folder: %s",
      policy.config.NumParameters() / 1e6, DescribeDevice(policy.device()), parts_->training_tasks,
      parts_->held_out_tasks, config_.steps(), config_.prompts_per_step(), config_.group_size(),
      parts_->verification.backend->modelled()
          ? absl::StrCat("candidates compiled for sm_89 and executed on the CPU, times modelled (",
                         config_.verifier().device_model(), ")")
          : "candidates executed and timed on the GPU",
      parts_->paths.dir));
  RETURN_IF_ERROR(Resume());
  parts_->startup_timer.EndPhase("checkpoint");
  Say(parts_->startup_timer.Summary());
  StartProgress();
  absl::Status status = Loop();
  if (!status.ok()) {
    parts_->runner->Abandon();
    // The steps that are done must not be lost with the one that failed. With several ranks, of
    // which perhaps only this one failed, there is no saving together.
    const absl::Status saved = ranks_.size() == 1 ? SaveWhatIsDone() : absl::OkStatus();
    if (ranks_.is_root() && saved.ok() && saved_ == done_ && done_ > 0) {
      Say(absl::StrCat("The ", done_,
                       " completed steps are saved; run the same command to resume."));
    }
    return status;
  }
  GrpoOutcome outcome;
  outcome.steps = done_;
  outcome.stopped = stopped_;
  if (!stopped_) {
    RETURN_IF_ERROR(Finish());
    outcome.model_dir = parts_->paths.FinalModel();
  }
  return outcome;
}

absl::Status GrpoRun::Loop() {
  while (!stopped_) {
    if (done_ > 0 && evaluations_.Due(done_)) {
      // It can take longer than many steps, in which a kill would lose the checkpoint.
      RETURN_IF_ERROR(Written(store_.Finish()));
      ASSIGN_OR_RETURN(const bool finished, evaluations_.Evaluate(done_));
      if (!finished) stopped_ = true;
    }
    if (stopped_ || done_ == config_.steps()) break;
    if (done_ == 0 && evaluations_.Due(0)) evaluations_.SaveInitialWeights();
    RETURN_IF_ERROR(Step());
    if (stopped_) break;
    if (ranks_.is_root()) report_.Start();
    if (evaluations_.has_initial_weights()) {
      // Until it is on file there must be no checkpoint: a run resumed from one would lack it.
      weights_good_ = false;
      ASSIGN_OR_RETURN(const bool finished, evaluations_.EvaluateInitialPolicy(done_));
      weights_good_ = finished;
      if (!finished) stopped_ = true;
      StartProgress();
    }
    ASSIGN_OR_RETURN(const bool stop, AnyStop(absl::OkStatus()));
    stopped_ = stopped_ || stop;
    RETURN_IF_ERROR(Written(store_.Poll()));
    const int every = config_.checkpoint().every();
    if (!stopped_ && (done_ == config_.steps() || (every > 0 && done_ % every == 0))) {
      RETURN_IF_ERROR(BeginCheckpoint());
    }
  }
  if (stopped_) {
    parts_->runner->Abandon();
    return SaveWhatIsDone();
  }
  return Written(store_.Finish());
}

bool GrpoRun::StartsNextRollout() const {
  // Evaluations have the engine for themselves.
  return config_.sampling().async_rollout() && done_ + 1 < config_.steps() &&
         !evaluations_.Due(done_ + 1) && !evaluations_.has_initial_weights();
}

absl::Status GrpoRun::Step() {
  StepClock clock = {.began = absl::Now(), .async_rollout = config_.sampling().async_rollout()};
  const absl::Time deadline = clock.began + absl::Seconds(config_.step_timeout_s());
  ASSIGN_OR_RETURN(const std::shared_ptr<SampleBatch> batch,
                   samples_.Start(done_, StartsNextRollout()));
  const auto keep_going = [&] {
    if (progress_ != nullptr) {
      progress_->Tick(done_, absl::StrFormat("generated %d/%d verified %d", batch->generated,
                                             batch->num_samples, batch->verified));
    }
    return !Interrupted();
  };
  const absl::Status status = parts_->runner->Wait(batch, Stage::kVerified, deadline, keep_going);
  ASSIGN_OR_RETURN(stopped_, AnyStop(status));
  if (stopped_) return absl::OkStatus();

  RlBatch rl = BuildRlBatch(*batch, config_.objective());
  weights_good_ = false;
  ASSIGN_OR_RETURN(const LearnStats learn,
                   LearnStep(*batch, {done_, samples_.next_started()}, &rl, parts_.get()));
  if (!learn.nonfinite_gradient.empty()) {
    Say(absl::StrCat("a gradient of step ", done_ + 1,
                     " was not finite, so the update was skipped: ", learn.nonfinite_gradient));
  }
  StepMetrics metrics;
  clock.ended = absl::Now();
  RETURN_IF_ERROR(GatherStepMetrics(*batch, rl, learn, clock, &ranks_, &metrics));
  if (metrics.samples == 0) {
    weights_good_ = true;               // nothing was learned
    RETURN_IF_ERROR(SaveWhatIsDone());  // all ranks are here
    ASSIGN_OR_RETURN(const std::vector<std::string> infra_errors,
                     ranks_.AllGather(FirstInfraError(*batch)));
    const auto fault = std::find_if(infra_errors.begin(), infra_errors.end(),
                                    [](const std::string& text) { return !text.empty(); });
    return absl::UnavailableError(
        absl::StrCat("no sample of step ", done_ + 1,
                     " could be verified: ", fault == infra_errors.end() ? "" : *fault));
  }
  RETURN_IF_ERROR(parts_->infra_errors->Commit());
  RETURN_IF_ERROR(Record(*batch, rl, metrics));
  ++done_;
  weights_good_ = true;
  return absl::OkStatus();
}

absl::Status GrpoRun::Record(const SampleBatch& batch, const RlBatch& rl,
                             const StepMetrics& metrics) {
  ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                   ranks_.AllGather(RecordsToText(MakeRecords(batch, &rl))));
  if (!ranks_.is_root()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<SampleRecord> records, MergeRecords(texts));
  const int64_t step = done_ + 1;
  RETURN_IF_ERROR(WriteFileAtomic(parts_->paths.StepSamples(step), RecordsToText(records)));
  RETURN_IF_ERROR(metrics_->Append(step, StepFields(metrics)));
  progress_->Line(step, StepLine(metrics));
  return absl::OkStatus();
}

absl::Status GrpoRun::Written(const absl::Status& status) {
  if (!status.ok()) saved_ = -1;
  return status;
}

absl::Status GrpoRun::BeginCheckpoint() {
  if (saved_ == done_ || !placement_.learns()) return absl::OkStatus();
  TrainingState state;
  state.program = "grpo_hrd";
  state.step = done_;
  state.seed = config_.seed();
  state.consecutive_skipped = parts_->learner->consecutive_skipped();
  RETURN_IF_ERROR(Written(store_.Begin(state, parts_->policy, *parts_->optimizer)));
  saved_ = done_;
  return absl::OkStatus();
}

absl::Status GrpoRun::SaveWhatIsDone() {
  if (weights_good_ && done_ > 0) RETURN_IF_ERROR(BeginCheckpoint());
  return Written(store_.Finish());
}

absl::Status GrpoRun::Finish() {
  if (!ranks_.is_root()) return absl::OkStatus();
  RETURN_IF_ERROR(
      SavePolicy(parts_->policy, parts_->paths.FinalModel(), config_.policy().save_dtype()));
  progress_.reset();
  const EvaluationResult* before = evaluations_.Find(0);
  const EvaluationResult* after = evaluations_.Find(done_);
  if (before != nullptr && after != nullptr) {
    std::printf("\n%s\n", EvaluationTable(*before, after).c_str());
  } else if (after != nullptr) {
    std::printf("\n%s\n", EvaluationTable(*after, nullptr).c_str());
  }
  const absl::Status report = report_.Finish(kReportTimeout);
  if (!report.ok()) Say("warning: " + Message(report));
  const std::string& dir = parts_->paths.dir;
  std::printf("This took %s. In %s:\n", ShortDuration(absl::Now() - began_).c_str(), dir.c_str());
  std::printf(
      "  report.html        curves and example kernels, before and after\n"
      "  model/             the trained policy (Hugging Face layout)\n"
      "  metrics.jsonl      one object a step; evaluations.jsonl one an evaluation\n"
      "  samples/           every sample with its verdict\n"
      "  tensorboard/       events;  checkpoints/  to go on from;  config.textproto, "
      "versions.json\n");
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GrpoOutcome> RunGrpoHrd(const GrpoHrdConfig& config, ProcessGroup* ranks,
                                       const SignalHandler& stop) {
  ASSIGN_OR_RETURN(std::unique_ptr<GrpoRunContext> parts, LoadGrpoRunContext(config, ranks));
  return GrpoRun(std::move(parts), stop).Run();
}

}  // namespace tritonrl
