#include "trainer/run/training_run.h"

#include <ATen/Parallel.h>

#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "trainer/config/text_proto.h"
#include "trainer/learner/recompute_plan.h"
#include "trainer/program/training_program.h"

namespace tritonrl {
namespace {

using ProtoMessage = google::protobuf::Message;  // not Message() of base/status.h

// Fields that do not change the training result.
constexpr const char* kMayDiffer[] = {"output_dir",
                                      "threads",
                                      "data_threads",
                                      "step_timeout_s",
                                      "collective_timeout_s",
                                      "memory_gib",
                                      "rollout_ranks",
                                      "checkpoint",
                                      "sampling.engine.enable_sleep_mode",
                                      "tasks.preflight_wait_s",
                                      "verifier.workers"};
constexpr int64_t kCpuMicroBatchTokens = 4096;

// Clears the field with this dotted path, if the message has it.
void ClearPath(absl::string_view path, ProtoMessage* message) {
  const std::vector<std::string> parts = absl::StrSplit(path, absl::MaxSplits('.', 1));
  const auto* field = message->GetDescriptor()->FindFieldByName(parts[0]);
  if (field == nullptr) return;
  if (parts.size() == 1) {
    message->GetReflection()->ClearField(message, field);
  } else {
    ClearPath(parts[1], message->GetReflection()->MutableMessage(message, field));
  }
}

int64_t StepsOf(const ProtoMessage& config) {
  return config.GetReflection()->GetInt64(config, config.GetDescriptor()->FindFieldByName("steps"));
}

double EpochsOf(const ProtoMessage& config) {
  return config.GetReflection()->GetDouble(config,
                                           config.GetDescriptor()->FindFieldByName("epochs"));
}

// Lists the forbidden differences between the configuration at the start of a run and the current
// one.
std::string ForbiddenDifferences(const ProtoMessage& before, const ProtoMessage& now) {
  const std::unique_ptr<ProtoMessage> a(before.New()), b(now.New());
  a->CopyFrom(before);
  b->CopyFrom(now);
  for (const char* path : kMayDiffer) {
    for (ProtoMessage* message : {a.get(), b.get()}) ClearPath(path, message);
  }
  if (StepsOf(before) <= StepsOf(now)) {
    for (ProtoMessage* message : {a.get(), b.get()}) ClearPath("steps", message);
  }
  if (EpochsOf(before) <= EpochsOf(now)) {
    for (ProtoMessage* message : {a.get(), b.get()}) ClearPath("epochs", message);
  }
  return ConfigDifferences(*a, *b);
}

}  // namespace

TrainingRun::TrainingRun(TrainingRunOptions options, CommonConfig config, ProcessGroup* ranks,
                         ProcessGroup* learners, const SignalHandler& stop)
    : options_(std::move(options)),
      config_(std::move(config)),
      ranks_(*ranks),
      learners_(learners),
      stop_(stop),
      dir_(UserPath(config_.output_dir)),
      store_(JoinPath(dir_, "checkpoints"), config_.checkpoint.keep(), learners) {
  state_.program = options_.program;
  state_.seed = config_.seed;
}

absl::Status TrainingRun::OpenFolder() {
  RETURN_IF_ERROR(ranks_.AllReduceStatus(ranks_.is_root() ? OpenFolderOnRoot() : absl::OkStatus()));
  startup_timer_.EndPhase("run folder");
  return absl::OkStatus();
}

absl::Status TrainingRun::OpenFolderOnRoot() {
  ASSIGN_OR_RETURN(run_dir_, RunDir::Open(dir_, config_.checkpoint.resume()));
  return StoreConfig();
}

absl::Status TrainingRun::StoreConfig() {
  const std::string text = FullText(*config_.all), path = run_dir_->config_path();
  if (!run_dir_->resumed()) return WriteFileAtomic(path, text);
  ASSIGN_OR_RETURN(const std::string before, ReadFile(path));
  if (before == text) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> checkpoints, store_.Steps());
  if (checkpoints.empty()) {
    // The folder holds no result yet, so a first attempt that failed (a mistyped path) does not
    // spoil it.
    for (const std::string& name : options_.derived_files) {
      RETURN_IF_ERROR(RemoveTree(JoinPath(dir_, name)));
    }
    return WriteFileAtomic(path, text);
  }
  const std::unique_ptr<ProtoMessage> stored(config_.all->New());
  RETURN_IF_ERROR(ParseTextProto(before, path, stored.get()));
  const std::string differences = ForbiddenDifferences(*stored, *config_.all);
  if (differences.empty()) return WriteFileAtomic(path, text);
  return absl::FailedPreconditionError(
      absl::StrCat("run folder ", dir_, " was begun with another configuration (", differences,
                   "); use the same configuration to go on, or another folder to begin anew"));
}

absl::Status TrainingRun::LoadPolicy() {
  threads_ = ThreadsFor(config_.threads, ranks_);
  at::set_num_threads(threads_);
  ASSIGN_OR_RETURN(policy_,
                   tritonrl::LoadPolicy(
                       config_.policy,
                       {.threads = threads_, .ranks = &ranks_, .startup_timer = &startup_timer_}));
  if (config_.micro_batch_tokens == 0) {
    config_.micro_batch_tokens =
        policy_.device().is_cpu() ? kCpuMicroBatchTokens : options_.gpu_micro_batch_tokens;
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::MakeOptimizer(int64_t max_sequence_tokens) {
  ASSIGN_OR_RETURN(const std::string plan,
                   PlanRecompute({.micro_batch_tokens = config_.micro_batch_tokens,
                                  .max_sequence_tokens = max_sequence_tokens,
                                  .memory_gib = config_.memory_gib,
                                  .zero_stage = config_.optimizer.zero_stage()},
                                 policy_, learners_));
  if (!plan.empty()) Say(std::string(absl::StripSuffix(plan, "\n")));
  optimizer_ = std::make_unique<AdamW>(config_.optimizer, policy_.weights, learners_);
  startup_timer_.EndPhase("optimizer");
  return absl::OkStatus();
}

absl::Status TrainingRun::LoadNewest() {
  std::vector<std::string> warnings;
  ASSIGN_OR_RETURN(const std::optional<TrainingState> found,
                   store_.LoadNewest(state_, &policy_, optimizer_.get(), &warnings));
  for (const std::string& warning : warnings) Say("warning: " + warning, LogLevel::kWarning);
  if (!found.has_value()) return absl::OkStatus();
  state_ = *found;
  saved_step_ = state_.step;
  if (state_.step > total_steps_) {
    return absl::FailedPreconditionError(absl::StrCat("run folder ", dir_, " already has ",
                                                      state_.step,
                                                      " steps, more than steps = ", total_steps_));
  }
  Say(absl::StrCat("Resuming after step ", state_.step, " of ", total_steps_, "."));
  return absl::OkStatus();
}

absl::Status TrainingRun::Resume(int64_t total_steps, std::map<std::string, std::string> versions) {
  total_steps_ = total_steps;
  if (learners_ != nullptr) RETURN_IF_ERROR(LoadNewest());
  // The all-reduce also keeps rank 0 from writing before all ranks have read.
  double step = static_cast<double>(state_.step);
  RETURN_IF_ERROR(ranks_.AllReduceMax(std::span<double>(&step, 1)));
  state_.step = static_cast<int64_t>(step);
  startup_timer_.EndPhase("checkpoint");
  if (!ranks_.is_root()) return absl::OkStatus();
  ASSIGN_OR_RETURN(metrics_, MetricsLog::Open(run_dir_->metrics_path(),
                                              state_.step + options_.first_step_number));
  versions["device"] = DescribeDevice(policy_.device());
  versions["steps"] = absl::StrCat(total_steps_);
  versions["ranks"] = absl::StrCat(ranks_.size());
  versions["parameters"] = absl::StrCat(policy_.config.NumParameters());
  return run_dir_->WriteVersions(versions);
}

void TrainingRun::StartProgress() {
  if (!ranks_.is_root()) return;
  ProgressOptions options;
  options.label = options_.progress_label;
  options.total = total_steps_;
  options.first = state_.step;
  progress_ = std::make_unique<Progress>(options);
}

absl::Status TrainingRun::Log(const MetricFields& fields, const std::string& text, bool stays) {
  if (!ranks_.is_root()) return absl::OkStatus();
  RETURN_IF_ERROR(metrics_->Append(state_.step + options_.first_step_number, fields));
  if (stays) {
    progress_->Line(state_.step + 1, text);
  } else {
    progress_->Tick(state_.step + 1, text);
  }
  return absl::OkStatus();
}

void TrainingRun::CompleteStep(int consecutive_skipped) {
  ++state_.step;
  state_.consecutive_skipped = consecutive_skipped;
  weights_valid_ = true;
}

absl::StatusOr<bool> TrainingRun::AnyStop(bool mine) {
  return ranks_.Any(stop_.requested() || mine);
}

absl::Status TrainingRun::Checkpoint() {
  RETURN_IF_ERROR(NoteWritten(store_.Poll()));
  const int every = config_.checkpoint.every();
  const bool due = complete() || (every > 0 && state_.step % every == 0);
  return due ? BeginCheckpoint() : absl::OkStatus();
}

absl::Status TrainingRun::BeginCheckpoint() {
  if (saved_step_ == state_.step || learners_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(NoteWritten(store_.Begin(state_, policy_, *optimizer_)));
  saved_step_ = state_.step;
  return absl::OkStatus();
}

absl::Status TrainingRun::FinishCheckpoint() { return NoteWritten(store_.Finish()); }

absl::Status TrainingRun::SaveCompletedSteps() {
  if (weights_valid_ && state_.step > 0) RETURN_IF_ERROR(BeginCheckpoint());
  return FinishCheckpoint();
}

absl::Status TrainingRun::NoteWritten(const absl::Status& status) {
  if (!status.ok()) saved_step_ = -1;
  return status;
}

absl::StatusOr<TrainingOutcome> TrainingRun::Finish(bool stopped) {
  TrainingOutcome outcome{.stopped = stopped, .steps = state_.step};
  if (stopped) return outcome;
  outcome.model_dir = JoinPath(dir_, "model");
  if (ranks_.is_root()) {
    RETURN_IF_ERROR(SavePolicy(policy_, outcome.model_dir, config_.policy.save_dtype()));
  }
  return outcome;
}

absl::Status TrainingRun::Fail(const absl::Status& error) {
  const absl::Status saved = ranks_.size() == 1 ? SaveCompletedSteps() : absl::OkStatus();
  if (saved.ok() && saved_step_ == state_.step && state_.step > 0) {
    Say(absl::StrCat("The ", state_.step,
                     " completed steps are saved; run the same command to resume."));
  }
  return error;
}

void TrainingRun::Say(const std::string& text, LogLevel level) {
  if (!ranks_.is_root()) return;
  if (progress_ != nullptr) progress_->ClearOpenLine();
  tritonrl::Log(level, text);
}

void TrainingRun::SayNonFinite(const std::string& path) {
  if (path.empty()) return;
  Say(absl::StrCat("a gradient of step ", state_.step + 1,
                   " was not finite, so the update was skipped: ", path),
      LogLevel::kWarning);
}

void TrainingRun::Tick(const std::string& text) {
  if (progress_ != nullptr) progress_->Tick(state_.step, text);
}

}  // namespace tritonrl
