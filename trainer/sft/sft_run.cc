#include "trainer/sft/sft_run.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/progress.h"
#include "base/run_dir.h"
#include "base/status.h"
#include "tasks/dataset.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config/text_proto.h"
#include "trainer/learner/policy.h"
#include "trainer/learner/recompute_plan.h"
#include "trainer/program/startup_timer.h"
#include "trainer/program/training_program.h"
#include "trainer/sft/sft_data.h"
#include "trainer/sft/sft_learner.h"

namespace tritonrl {
namespace {

constexpr int64_t kCpuMicroBatchTokens = 4096;
constexpr int64_t kGpuMicroBatchTokens = 65536;

// The state of one run. Only rank 0 touches the run directory.
class SftRun {
 public:
  SftRun(const SftConfig& config, ProcessGroup* ranks, const SignalHandler& stop)
      : config_(config),
        ranks_(*ranks),
        stop_(stop),
        output_dir_(UserPath(config.output_dir())),
        store_(JoinPath(output_dir_, "checkpoints"), config.checkpoint().keep(), ranks) {}

  absl::StatusOr<SftOutcome> Run();

 private:
  absl::Status OpenRunDirectory();
  absl::Status KeepConfig();
  std::string TrainCorpusPath() const { return JoinPath(output_dir_, "corpus_train.jsonl"); }
  std::string EvalCorpusPath() const { return JoinPath(output_dir_, "corpus_eval.jsonl"); }
  absl::Status MakeCorpus(std::vector<std::string>* train, std::vector<std::string>* eval);
  absl::Status WriteCorpusOnce(const std::string& path, uint64_t first, uint64_t count);
  absl::Status OpenData();
  absl::Status Resume();
  absl::Status Loop();
  absl::Status Evaluate();
  absl::Status Log(int64_t step, const SftStepStats& stats, bool evaluated);
  absl::Status BeginCheckpoint();
  void Say(const std::string& text) const;

  const SftConfig& config_;
  ProcessGroup& ranks_;
  const SignalHandler& stop_;
  const std::string output_dir_;
  CheckpointStore store_;
  int64_t total_steps_ = 0;
  int64_t micro_batch_tokens_ = 0;
  TrainingState state_;
  SftOutcome outcome_;

  std::unique_ptr<RunDir> run_dir_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<JsonlData> train_data_;
  std::unique_ptr<SftOrder> order_;
  std::optional<SftBatch> eval_batch_;
  Policy policy_;
  std::unique_ptr<AdamW> optimizer_;
  std::unique_ptr<SftLearner> learner_;
  StartupTimer startup_timer_;
  absl::Time last_log_;
  int64_t tokens_since_log_ = 0;
  int64_t dropped_ = 0;
};

void SftRun::Say(const std::string& text) const {
  if (!ranks_.is_root()) return;
  if (progress_ != nullptr) {
    progress_->Print(text);
  } else {
    absl::FPrintF(stderr, "%s\n", text);
  }
}

absl::Status SftRun::OpenRunDirectory() {
  if (ranks_.is_root()) {
    ASSIGN_OR_RETURN(run_dir_, RunDir::Open(output_dir_, config_.checkpoint().resume()
                                                             ? RunDir::Mode::kCreateOrResume
                                                             : RunDir::Mode::kCreate));
    RETURN_IF_ERROR(KeepConfig());
  }
  return ranks_.Barrier();
}

// Other settings in a folder with a checkpoint are refused. Without one nothing would be lost, so a
// first try that failed (a mistyped path) does not spoil the folder.
absl::Status SftRun::KeepConfig() {
  const std::string text = FullText(config_);
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store_.Steps());
  if (!run_dir_->resumed() || !steps.empty()) return run_dir_->WriteConfig(text);
  ASSIGN_OR_RETURN(const std::string before, ReadFile(run_dir_->config_path()));
  if (before == text) return absl::OkStatus();
  RETURN_IF_ERROR(RemoveTree(TrainCorpusPath()));
  RETURN_IF_ERROR(RemoveTree(EvalCorpusPath()));
  return WriteFileAtomic(run_dir_->config_path(), text);
}

// A corpus appears under its name only when it is complete, so one that is there is used as it is.
absl::Status SftRun::WriteCorpusOnce(const std::string& path, uint64_t first, uint64_t count) {
  if (!ranks_.is_root() || FileExists(path)) return absl::OkStatus();
  CorpusSettings settings;
  settings.seed = config_.generated().seed();
  settings.hard_rate = config_.generated().hard_rate();
  settings.easy_rate = config_.generated().easy_rate();
  settings.structural_rate = config_.generated().structural_rate();
  Say(absl::StrCat("generating ", count, " examples: ", path));
  return WriteCorpus(settings, first, count, /*with_references=*/false, path);
}

absl::Status SftRun::MakeCorpus(std::vector<std::string>* train, std::vector<std::string>* eval) {
  const GeneratedCorpusConfig& g = config_.generated();
  if (g.samples() == 0) return absl::OkStatus();
  train->push_back(TrainCorpusPath());
  RETURN_IF_ERROR(WriteCorpusOnce(train->back(), 0, g.samples()));
  if (g.eval_samples() > 0) {
    eval->push_back(EvalCorpusPath());
    RETURN_IF_ERROR(WriteCorpusOnce(eval->back(), g.samples(), g.eval_samples()));
  }
  return ranks_.Barrier();
}

absl::Status SftRun::OpenData() {
  std::vector<std::string> train, eval;
  for (const std::string& path : config_.train_data()) {
    ASSIGN_OR_RETURN(train.emplace_back(), FindInputPath(path));
  }
  for (const std::string& path : config_.eval_data()) {
    ASSIGN_OR_RETURN(eval.emplace_back(), FindInputPath(path));
  }
  RETURN_IF_ERROR(MakeCorpus(&train, &eval));
  ASSIGN_OR_RETURN(train_data_, JsonlData::Open(train));
  order_ = std::make_unique<SftOrder>(train_data_.get(), config_);
  total_steps_ = config_.steps();
  if (total_steps_ == 0) {
    total_steps_ = static_cast<int64_t>(std::ceil(
        config_.epochs() * static_cast<double>(train_data_->size()) / config_.batch_size()));
  }
  if (eval.empty() || config_.eval_samples() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<JsonlData> eval_data, JsonlData::Open(eval));
  std::vector<int64_t> first(std::min<int64_t>(config_.eval_samples(), eval_data->size()));
  std::iota(first.begin(), first.end(), 0);
  ASSIGN_OR_RETURN(eval_batch_,
                   MakeSftBatch(*eval_data, first, *policy_.tokenizer, policy_.end_token(),
                                config_.max_sequence_tokens(), micro_batch_tokens_,
                                {ranks_.rank(), ranks_.size(), SequenceCostFor(policy_.config)}));
  return absl::OkStatus();
}

absl::Status SftRun::Resume() {
  state_.program = "sft";
  state_.seed = config_.seed();
  std::vector<std::string> warnings;
  ASSIGN_OR_RETURN(const std::optional<TrainingState> found,
                   store_.LoadNewest(state_, &policy_, optimizer_.get(), &warnings));
  for (const std::string& warning : warnings) Say("warning: " + warning);
  if (found.has_value()) {
    state_ = *found;
    learner_->set_consecutive_skipped(state_.consecutive_skipped);
    Say(absl::StrCat("resuming from the checkpoint of step ", state_.step, " of ", total_steps_));
  }
  if (!ranks_.is_root()) return absl::OkStatus();
  ASSIGN_OR_RETURN(metrics_, MetricsLog::Open(run_dir_->metrics_path(), state_.step));
  return run_dir_->WriteVersions({{"device", DescribeDevice(policy_.device())},
                                  {"ranks", absl::StrCat(ranks_.size())},
                                  {"parameters", absl::StrCat(policy_.config.NumParameters())}});
}

absl::StatusOr<SftOutcome> SftRun::Run() {
  const int threads = ThreadsFor(config_.threads(), ranks_);
  at::set_num_threads(threads);
  RETURN_IF_ERROR(OpenRunDirectory());
  startup_timer_.EndPhase("run folder");
  ASSIGN_OR_RETURN(policy_, LoadPolicy(config_.policy(), {.threads = threads,
                                                          .ranks = &ranks_,
                                                          .startup_timer = &startup_timer_}));
  const bool cpu = policy_.device().is_cpu();
  micro_batch_tokens_ = config_.micro_batch_tokens() > 0
                            ? config_.micro_batch_tokens()
                            : (cpu ? kCpuMicroBatchTokens : kGpuMicroBatchTokens);
  RETURN_IF_ERROR(OpenData());
  startup_timer_.EndPhase("data");
  ASSIGN_OR_RETURN(const std::string plan,
                   PlanRecompute({.micro_batch_tokens = micro_batch_tokens_,
                                  .max_sequence_tokens = config_.max_sequence_tokens(),
                                  .memory_gib = config_.memory_gib(),
                                  .zero_stage = config_.optimizer().zero_stage()},
                                 policy_, &ranks_));
  if (!plan.empty()) Say(std::string(absl::StripSuffix(plan, "\n")));
  optimizer_ = std::make_unique<AdamW>(config_.optimizer(), policy_.weights, &ranks_);
  learner_ =
      std::make_unique<SftLearner>(config_.optimizer(), total_steps_, &policy_, optimizer_.get(),
                                   &ranks_, JoinPath(output_dir_, "nonfinite_gradients"));
  startup_timer_.EndPhase("optimizer");
  RETURN_IF_ERROR(Resume());
  startup_timer_.EndPhase("checkpoint");
  Say(absl::StrFormat("%d parameters on %s, %d examples, %d steps of %d",  //
                      policy_.config.NumParameters(), DescribeDevice(policy_.device()),
                      train_data_->size(), total_steps_, config_.batch_size()));
  const absl::Status trained = Loop();
  if (!trained.ok()) {
    // A checkpoint that is being written must not be lost with a later step. With several ranks, of
    // which perhaps only this one failed, there is no publishing it together.
    if (ranks_.size() == 1) store_.Finish().IgnoreError();
    return trained;
  }
  outcome_.steps = state_.step;
  if (outcome_.stopped) return outcome_;
  outcome_.model_dir = JoinPath(output_dir_, "model");
  if (ranks_.is_root()) {
    RETURN_IF_ERROR(SavePolicy(policy_, outcome_.model_dir, config_.policy().save_dtype()));
  }
  RETURN_IF_ERROR(ranks_.Barrier());
  return outcome_;
}

absl::Status SftRun::Loop() {
  SftLoaderOptions options;
  options.end_token = policy_.end_token();
  options.max_sequence_tokens = config_.max_sequence_tokens();
  options.micro_batch_tokens = micro_batch_tokens_;
  options.rank = ranks_.rank();
  options.size = ranks_.size();
  options.cost = SequenceCostFor(policy_.config);
  options.threads =
      config_.data_threads() > 0 ? config_.data_threads() : (policy_.device().is_cpu() ? 1 : 4);
  options.first_step = state_.step;
  options.end_step = total_steps_;
  SftLoader loader(options, train_data_.get(), order_.get(), policy_.tokenizer.get());
  if (ranks_.is_root()) {
    ProgressOptions bar;
    bar.label = "sft";
    bar.total = total_steps_;
    bar.first = state_.step;
    progress_ = std::make_unique<Progress>(bar);
  }
  last_log_ = absl::Now();
  while (state_.step < total_steps_) {
    const int64_t step = state_.step;
    ASSIGN_OR_RETURN(const SftBatch batch, loader.Next());
    if (step == options.first_step) {
      startup_timer_.EndPhase("first batch");
      Say(startup_timer_.Summary());
    }
    ASSIGN_OR_RETURN(const SftStepStats stats, learner_->Step(batch, step));
    ++state_.step;
    if (!stats.nonfinite_gradient.empty()) {
      Say(absl::StrCat("the gradient of step ", state_.step,
                       " was not finite, so the update was skipped: ", stats.nonfinite_gradient));
    }
    outcome_.loss = stats.loss;
    tokens_since_log_ += stats.tokens;
    dropped_ += stats.dropped;
    const bool last = state_.step == total_steps_;
    const bool evaluate =
        eval_batch_.has_value() &&
        (last || (config_.eval_every() > 0 && state_.step % config_.eval_every() == 0));
    if (evaluate) RETURN_IF_ERROR(Evaluate());
    if (evaluate || last || step % config_.log_every() == 0) {
      RETURN_IF_ERROR(Log(step, stats, evaluate));
    }
    ASSIGN_OR_RETURN(outcome_.stopped, ranks_.Any(stop_.requested()));
    outcome_.stopped = outcome_.stopped && !last;
    const int every = config_.checkpoint().every();
    if (last || outcome_.stopped || (every > 0 && state_.step % every == 0)) {
      RETURN_IF_ERROR(BeginCheckpoint());
    }
    if (outcome_.stopped) break;
    RETURN_IF_ERROR(store_.Poll());
  }
  RETURN_IF_ERROR(store_.Finish());
  if (dropped_ > 0) {
    Say(absl::StrCat(dropped_, " examples were longer than max_sequence_tokens (",
                     config_.max_sequence_tokens(), ") and left out"));
  }
  progress_.reset();
  return absl::OkStatus();
}

absl::Status SftRun::Evaluate() {
  ASSIGN_OR_RETURN(outcome_.eval_loss, learner_->EvaluateLoss(*eval_batch_));
  return absl::OkStatus();
}

absl::Status SftRun::Log(int64_t step, const SftStepStats& stats, bool evaluated) {
  if (!ranks_.is_root()) return absl::OkStatus();
  const absl::Time now = absl::Now();
  const double rate = static_cast<double>(tokens_since_log_) /
                      std::max(1e-9, absl::ToDoubleSeconds(now - last_log_));
  last_log_ = now;
  tokens_since_log_ = 0;
  MetricFields fields = {{"loss", stats.loss},
                         {"learning_rate", stats.learning_rate},
                         {"gradient_norm", stats.gradient_norm},
                         {"tokens", stats.tokens},
                         {"response_tokens", stats.response_tokens},
                         {"dropped", stats.dropped},
                         {"skipped", stats.skipped},
                         {"tokens_per_s", rate}};
  std::string line = absl::StrFormat("loss %.4f  lr %.2e  grad %.3f  %.1fk tok/s", stats.loss,
                                     stats.learning_rate, stats.gradient_norm, rate / 1000);
  if (evaluated) {
    fields.emplace_back("eval_loss", outcome_.eval_loss);
    line += absl::StrFormat("  eval loss %.4f", outcome_.eval_loss);
    progress_->Line(state_.step, line);
  } else {
    progress_->Tick(state_.step, line);
  }
  return metrics_->Append(step, fields);
}

absl::Status SftRun::BeginCheckpoint() {
  state_.consecutive_skipped = learner_->consecutive_skipped();
  return store_.Begin(state_, policy_, *optimizer_);
}

}  // namespace

absl::StatusOr<SftOutcome> RunSft(const SftConfig& config, ProcessGroup* ranks,
                                  const SignalHandler& stop) {
  return SftRun(config, ranks, stop).Run();
}

}  // namespace tritonrl
