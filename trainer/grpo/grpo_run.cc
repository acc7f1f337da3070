#include "trainer/grpo/grpo_run.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "trainer/grpo/evaluation_scheduler.h"
#include "trainer/grpo/grpo_step.h"
#include "trainer/grpo/model_state.h"
#include "trainer/grpo/prompts.h"
#include "trainer/grpo/rank_placement.h"
#include "trainer/grpo/run_paths.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/grpo/sample_runner.h"
#include "trainer/grpo/verification.h"
#include "trainer/objective/advantage.h"
#include "trainer/program/training_program.h"
#include "trainer/report/report_process.h"

namespace tritonrl {
namespace {

// Time limit of the last rendering of the report.
constexpr absl::Duration kReportTimeout = absl::Seconds(90);

// "triton-3.6.0.dist-info" -> "3.6.0"; empty if `site` does not hold the package.
std::string PackageVersion(const std::string& site, const std::string& package) {
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(site);
  if (!names.ok()) return "";
  for (const std::string& name : *names) {
    const std::string prefix = package + "-", suffix = ".dist-info";
    if (absl::StartsWith(name, prefix) && absl::EndsWith(name, suffix)) {
      return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    }
  }
  return "";
}

// Entries of versions.json in addition to those of every run.
std::map<std::string, std::string> Versions(const GrpoHrdConfig& config,
                                            const DeviceBackend& backend) {
  std::map<std::string, std::string> entries = {
      {"verification", backend.name()},
      {"times", backend.modelled() ? "modelled" : "measured"},
      {"rollout ranks", absl::StrCat(config.rollout_ranks())}};
  if (absl::StatusOr<PythonEnv> python = FindPythonEnv(); python.ok()) {
    entries["python"] = python->interpreter;
    for (const char* package : {"torch", "triton", "numpy"}) {
      entries[package] = PackageVersion(python->site_packages, package);
    }
  }
  return entries;
}

class GrpoRun {
 public:
  GrpoRun(const GrpoHrdConfig& config, ProcessGroup* ranks, RankPlacement* placement,
          const SignalHandler& stop)
      : config_(config),
        ranks_(*ranks),
        placement_(*placement),
        run_({.program = "grpo_hrd",
              .progress_label = "step",
              .first_step_number = 1,
              .gpu_micro_batch_tokens = 32768,
              .derived_files = {"journal"}},
             config, ranks, placement->learners(), stop),
        paths_{run_.dir()},
        report_(run_.dir()) {}

  absl::StatusOr<TrainingOutcome> Run();

 private:
  using Stage = SampleRunner::Stage;

  absl::Status Load();
  absl::Status LoadVerification();
  absl::Status LoadTasks();
  // Makes the sample runner and the evaluator, for the style of the policy's responses.
  absl::Status MakeRunner();
  // Prints a summary of policy, tasks and backend.
  void Introduce();
  absl::Status Resume();
  absl::Status Loop();
  absl::Status Evaluate();
  absl::Status Step();
  // Whether samples of the next step may be started in this one.
  bool StartsNextRollout() const;
  // Saves the completed steps and returns the error of a step without any verified sample.
  absl::Status NothingVerified(const SampleBatch& batch);
  absl::Status Record(const SampleBatch& batch, const RlBatch& rl, const StepMetrics& metrics);
  void PrintResults();

  // Whether to stop waiting: on a signal, or if verification failed.
  bool Interrupted() const { return run_.stop_requested() || !verification_.Health().ok(); }
  // Whether any rank received a stop signal or failed; all ranks call it at the same points.
  absl::StatusOr<bool> AnyStop(const absl::Status& status);

  // Members are in the order of construction; each uses only those above it.
  GrpoHrdConfig config_;  // its steps are set when the tasks are known
  ProcessGroup& ranks_;
  RankPlacement& placement_;
  TrainingRun run_;
  const RunPaths paths_;
  Verification verification_;
  ModelState model_;
  std::optional<RunTasks> tasks_;
  ResponseStyleChoice style_;
  std::unique_ptr<InfraErrorJournal> infra_errors_;
  std::unique_ptr<SampleRunner> runner_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<EvaluationScheduler> evaluations_;
  std::unique_ptr<StepRollout> rollout_;
  ReportProcess report_;
  bool stopped_ = false;
  absl::Time began_ = absl::Now();
};

absl::Status GrpoRun::Load() {
  RETURN_IF_ERROR(run_.OpenFolder());
  RETURN_IF_ERROR(LoadVerification());
  run_.startup_timer().EndPhase("verification");
  ASSIGN_OR_RETURN(model_, LoadModelState(config_, &ranks_, &placement_, &run_));
  ASSIGN_OR_RETURN(infra_errors_, InfraErrorJournal::Open(paths_.InfraErrorJournal(ranks_.rank())));
  RETURN_IF_ERROR(LoadTasks());
  RETURN_IF_ERROR(MakeRunner());
  run_.startup_timer().EndPhase("tasks");
  evaluations_ = std::make_unique<EvaluationScheduler>(
      config_, run_.dir(), &ranks_, &model_, evaluator_.get(), infra_errors_.get(),
      EvaluationScheduler::Hooks{
          .keep_going = [this] { return !Interrupted(); },
          .any_stop = [this](const absl::Status& status) { return AnyStop(status); },
          .say = [this](const std::string& line) { run_.Say(line); }});
  rollout_ = std::make_unique<StepRollout>(config_, model_, tasks_->prompts, runner_.get());
  return absl::OkStatus();
}

absl::Status GrpoRun::LoadVerification() {
  RETURN_IF_ERROR(CreateDirectories(paths_.JournalDir()));
  VerificationOptions options;
  options.config = config_.verifier();
  // A rank that only learns verifies nothing, except for rank 0's preflight of the tasks.
  const bool preflight =
      ranks_.is_root() && (config_.tasks().preflight() || config_.tasks().preflight_held_out());
  if (!placement_.generates() && !preflight) options.config.set_workers(1);
  options.seed = config_.seed();
  options.journal = paths_.VerdictJournal(ranks_.rank());
  options.cores = ThreadsFor(/*configured=*/0, ranks_);
  ASSIGN_OR_RETURN(verification_, StartVerification(options));
  return absl::OkStatus();
}

absl::Status GrpoRun::LoadTasks() {
  ASSIGN_OR_RETURN(tasks_,
                   LoadRunTasks(config_, *model_.policy->tokenizer, model_.policy->chat.get(),
                                verification_, paths_.PreflightJournal(), &ranks_));
  config_.set_steps(tasks_->steps);
  if (model_.learner != nullptr) model_.learner->set_total_steps(tasks_->steps);
  return absl::OkStatus();
}

absl::Status GrpoRun::MakeRunner() {
  const Policy& policy = *model_.policy;
  const auto prompts = tasks_->prompts.Draw(/*step=*/0, /*count=*/1);
  ASSIGN_OR_RETURN(
      style_,
      ChoosePolicyStyle(config_.tasks().response_style(), config_.tasks().code_block(),
                        policy.folder, *prompts.front(), *policy.tokenizer, policy.chat.get()));
  runner_ =
      std::make_unique<SampleRunner>(model_.engine.get(), verification_.verifier.get(),
                                     policy.tokenizer.get(), style_.style, infra_errors_.get());
  EvaluatorOptions options;
  options.samples = config_.eval().samples();
  options.sampling = MakeSamplingSettings(config_.sampling(), policy);
  options.sampling.temperature = config_.eval().temperature();
  options.sampling.top_p = 1;
  options.sampling.top_k = 0;
  options.greedy = config_.eval().greedy();
  options.seed = config_.seed();
  options.share = placement_.Share(static_cast<int>(tasks_->held_out.size()));
  evaluator_ = std::make_unique<Evaluator>(options, tasks_->held_out, runner_.get(), &ranks_);
  return absl::OkStatus();
}

void GrpoRun::Introduce() {
  for (const std::string& problem : tasks_->problems) run_.Say("left out: " + problem);
  const Policy& policy = *model_.policy;
  run_.Say(absl::StrFormat(
      "GRPO-HRD: %.2fM parameters on %s; %d training tasks, %d held out; %d steps of %d prompts x "
      "%d samples; %s; %s.\nRun folder: %s",
      policy.config.NumParameters() / 1e6, DescribeDevice(policy.device()), tasks_->training_tasks,
      evaluator_->num_tasks(), config_.steps(), config_.prompts_per_step(), config_.group_size(),
      verification_.backend->modelled()
          ? absl::StrCat("candidates compiled for sm_89 and executed on the CPU, times modelled (",
                         config_.verifier().device_model(), ")")
          : "candidates executed and timed on the GPU",
      DescribeJudge(config_.verifier().judge()), run_.dir()));
  for (const std::string& lengths : tasks_->prompt_lengths) run_.Say(lengths + ".");
  run_.Say(absl::StrCat("Chat template: ", policy.chat->source(), "."));
  run_.Say(style_.Sentence() + ".");
}

absl::StatusOr<bool> GrpoRun::AnyStop(const absl::Status& status) {
  RETURN_IF_ERROR(verification_.Health());
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  // A rank waits here longer than other ranks wait for their samples, so that it does not time out
  // before them.
  RETURN_IF_ERROR(placement_.WaitForOtherRanks(evaluations_->Timeout() +
                                               absl::Seconds(config_.collective_timeout_s())));
  return run_.AnyStop(!status.ok());
}

absl::Status GrpoRun::Resume() {
  RETURN_IF_ERROR(run_.Resume(config_.steps(), Versions(config_, *verification_.backend)));
  const int64_t done = run_.step();
  if (done > 0 && placement_.disaggregated()) {
    RETURN_IF_ERROR(placement_.SyncWeightsToRollout(done, {}, model_.engine.get()));
  } else if (done > 0) {
    RETURN_IF_ERROR(model_.engine->BeginWeightUpdate());
    model_.engine->EndWeightUpdate(static_cast<uint64_t>(done));
  }
  if (model_.learner != nullptr)
    model_.learner->set_consecutive_skipped(run_.consecutive_skipped());
  return ranks_.is_root() ? evaluations_->Open(done) : absl::OkStatus();
}

absl::StatusOr<TrainingOutcome> GrpoRun::Run() {
  RETURN_IF_ERROR(Load());
  Introduce();
  RETURN_IF_ERROR(Resume());
  run_.Say(run_.startup_timer().Summary());
  run_.StartProgress();
  if (const absl::Status status = Loop(); !status.ok()) {
    runner_->Abandon();
    return run_.Fail(status);
  }
  ASSIGN_OR_RETURN(const TrainingOutcome outcome, run_.Finish(stopped_));
  if (!stopped_ && ranks_.is_root()) PrintResults();
  return outcome;
}

absl::Status GrpoRun::Loop() {
  while (!stopped_) {
    if (run_.step() > 0) RETURN_IF_ERROR(Evaluate());
    if (stopped_ || run_.complete()) break;
    if (run_.step() == 0 && evaluations_->Due(0)) evaluations_->SaveInitialWeights();
    RETURN_IF_ERROR(Step());
    if (stopped_) break;
    if (ranks_.is_root()) report_.Start();
    if (evaluations_->has_initial_weights()) {
      // No checkpoint before this evaluation is stored: a run resumed from one would lack the
      // evaluation.
      run_.BeginUpdate();
      ASSIGN_OR_RETURN(const bool finished, evaluations_->EvaluateInitialPolicy(run_.step()));
      if (finished) run_.CancelUpdate();
      stopped_ = !finished;
      // Restarts the estimate: the first step included the start of the workers, and the evaluation
      // is not a step.
      run_.StartProgress();
    }
    ASSIGN_OR_RETURN(const bool stop, AnyStop(absl::OkStatus()));
    stopped_ = stopped_ || stop;
    if (!stopped_) RETURN_IF_ERROR(run_.Checkpoint());
  }
  if (stopped_) runner_->Abandon();
  return run_.SaveCompletedSteps();
}

absl::Status GrpoRun::Evaluate() {
  if (!evaluations_->Due(run_.step())) return absl::OkStatus();
  // An evaluation can take longer than many steps; a kill during it must not lose the checkpoint.
  RETURN_IF_ERROR(run_.FinishCheckpoint());
  ASSIGN_OR_RETURN(const bool finished, evaluations_->Evaluate(run_.step()));
  stopped_ = !finished;
  return absl::OkStatus();
}

bool GrpoRun::StartsNextRollout() const {
  // Evaluations do not share the engine with other samples.
  return config_.sampling().async_rollout() && run_.step() + 1 < config_.steps() &&
         !evaluations_->Due(run_.step() + 1) && !evaluations_->has_initial_weights();
}

absl::Status GrpoRun::Step() {
  const int64_t done = run_.step();
  StepClock clock = {.began = absl::Now(), .async_rollout = config_.sampling().async_rollout()};
  const absl::Time deadline = clock.began + absl::Seconds(config_.step_timeout_s());
  ASSIGN_OR_RETURN(const std::shared_ptr<SampleBatch> batch,
                   rollout_->Start(done, StartsNextRollout()));
  const auto keep_going = [&] {
    run_.Tick(absl::StrFormat("generated %d/%d verified %d", batch->generated, batch->num_samples,
                              batch->verified));
    return !Interrupted();
  };
  const absl::Status status = runner_->Wait(batch, Stage::kVerified, deadline, keep_going);
  ASSIGN_OR_RETURN(stopped_, AnyStop(status));
  if (stopped_) return absl::OkStatus();

  RlBatch rl = BuildRlBatch(*batch, config_.objective());
  run_.BeginUpdate();
  ASSIGN_OR_RETURN(const LearnStats learn,
                   LearnStep(*batch, {done, rollout_->next_started()}, config_, &rl, &model_));
  run_.SayNonFinite(learn.nonfinite_gradient);
  StepMetrics metrics;
  clock.ended = absl::Now();
  RETURN_IF_ERROR(GatherStepMetrics(*batch, rl, learn, clock, &ranks_, &metrics));
  if (metrics.samples == 0) return NothingVerified(*batch);
  metrics.epoch = tasks_->prompts.EpochsOf((done + 1) * config_.prompts_per_step());
  RETURN_IF_ERROR(infra_errors_->Commit());
  RETURN_IF_ERROR(Record(*batch, rl, metrics));
  run_.CompleteStep(model_.learner == nullptr ? 0 : model_.learner->consecutive_skipped());
  return absl::OkStatus();
}

absl::Status GrpoRun::NothingVerified(const SampleBatch& batch) {
  run_.CancelUpdate();                         // the weights have not changed
  RETURN_IF_ERROR(run_.SaveCompletedSteps());  // a collective call: all ranks take this path
  ASSIGN_OR_RETURN(const std::vector<std::string> infra_errors,
                   ranks_.AllGather(FirstInfraError(batch)));
  const auto first = std::find_if(infra_errors.begin(), infra_errors.end(),
                                  [](const std::string& text) { return !text.empty(); });
  return absl::UnavailableError(
      absl::StrCat("no sample of step ", run_.step() + 1,
                   " could be verified: ", first == infra_errors.end() ? "" : *first));
}

absl::Status GrpoRun::Record(const SampleBatch& batch, const RlBatch& rl,
                             const StepMetrics& metrics) {
  ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                   ranks_.AllGather(RecordsToText(MakeRecords(batch, &rl))));
  if (!ranks_.is_root()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<SampleRecord> records, MergeRecords(texts));
  RETURN_IF_ERROR(WriteFileAtomic(paths_.StepSamples(run_.step() + 1), RecordsToText(records)));
  return run_.Log(StepFields(metrics), StepLine(metrics));
}

void GrpoRun::PrintResults() {
  run_.EndProgress();
  const EvaluationResult* before = evaluations_->Find(0);
  const EvaluationResult* after = evaluations_->Find(run_.step());
  if (before != nullptr && after != nullptr) {
    std::printf("\n%s\n", EvaluationTable(*before, after).c_str());
  } else if (after != nullptr) {
    std::printf("\n%s\n", EvaluationTable(*after, nullptr).c_str());
  }
  const absl::Status report = report_.Finish(kReportTimeout);
  if (!report.ok()) run_.Say("warning: " + Message(report), LogLevel::kWarning);
  std::printf("This took %s. In %s:\n", ShortDuration(absl::Now() - began_).c_str(),
              run_.dir().c_str());
  std::printf(
      "  report.html        curves and example kernels, before and after\n"
      "  model/             the trained policy (Hugging Face layout)\n"
      "  metrics.jsonl      one object a step; evaluations.jsonl one an evaluation\n"
      "  samples/           every sample with its verdict\n"
      "  tensorboard/       events;  checkpoints/  to go on from;  config.textproto, "
      "versions.json\n");
  std::fflush(stdout);
}

}  // namespace

absl::StatusOr<TrainingOutcome> RunGrpoHrd(const GrpoHrdConfig& config, ProcessGroup* ranks,
                                           const SignalHandler& stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RankPlacement> placement,
                   RankPlacement::Make(config.rollout_ranks(), ranks));
  return GrpoRun(config, ranks, placement.get(), stop).Run();
}

}  // namespace tritonrl
