// The common parts of SFT and GRPO runs: run folder, policy, optimizer, checkpoints, stop signals,
// metrics and progress.
#ifndef TRITONRL_TRAINER_RUN_TRAINING_RUN_H_
#define TRITONRL_TRAINER_RUN_TRAINING_RUN_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/run_dir.h"
#include "parallel/process_group.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config/config.pb.h"
#include "trainer/learner/policy.h"
#include "trainer/optimizer/adamw.h"
#include "trainer/program/training_program.h"

namespace tritonrl {

struct TrainingOutcome {
  bool stopped = false;   // stopped by a signal after writing a checkpoint
  int64_t steps = 0;      // completed steps
  std::string model_dir;  // folder of the trained policy; "" if stopped
};

struct TrainingRunOptions {
  std::string program;                     // TrainingState::program
  std::string progress_label;              // text before the progress bar
  int64_t first_step_number = 0;           // number of the first step in metrics.jsonl
  int64_t gpu_micro_batch_tokens = 32768;  // default if the configuration has 0
  // Files and folders of the run folder that depend on the configuration. They are removed when
  // another configuration replaces it.
  std::vector<std::string> derived_files;
};

class TrainingRun {
 public:
  // `Config` is SftConfig or GrpoHrdConfig. `ranks`: all ranks of the job. `learners`: the ranks
  // that learn; null on a rank that only generates. All references must outlive this object.
  template <typename Config>
  TrainingRun(TrainingRunOptions options, const Config& config, ProcessGroup* ranks,
              ProcessGroup* learners, const SignalHandler& stop)
      : TrainingRun(std::move(options),
                    CommonConfig{.all = &config,
                                 .policy = config.policy(),
                                 .optimizer = config.optimizer(),
                                 .checkpoint = config.checkpoint(),
                                 .seed = config.seed(),
                                 .threads = config.threads(),
                                 .micro_batch_tokens = config.micro_batch_tokens(),
                                 .memory_gib = config.memory_gib(),
                                 .output_dir = config.output_dir()},
                    ranks, learners, stop) {}

  // Start of a run. All ranks call these functions together, in this order; MakeOptimizer is only
  // for the ranks that learn.

  // Opens the run folder and stores the configuration there (rank 0). A resumed run may have more
  // steps or epochs than before, and may differ in fields that do not change the training result;
  // FailedPrecondition names any other difference. A folder without a checkpoint accepts any
  // configuration.
  absl::Status OpenFolder();
  absl::Status LoadPolicy();
  // Chooses the activations to recompute (PlanRecompute) and makes the optimizer.
  absl::Status MakeOptimizer(int64_t max_sequence_tokens);
  // Restores the newest checkpoint, if there is one, and opens metrics.jsonl at its step.
  // `versions` are entries for versions.json. FailedPrecondition: the checkpoint has more steps
  // than the run.
  absl::Status Resume(int64_t total_steps, std::map<std::string, std::string> versions);
  // Rank 0 shows a progress bar from this call on. The remaining time is estimated from the steps
  // after this call only.
  void StartProgress();

  // A step. Between BeginUpdate and CompleteStep the weights are not those of `step()` completed
  // steps and are not saved.

  void BeginUpdate() { weights_valid_ = false; }
  // Says that the weights are again those of step() completed steps.
  void CancelUpdate() { weights_valid_ = true; }
  // Appends the current step's line to metrics.jsonl and shows `text`, permanently or (`stays`
  // false) until the next text. Called before CompleteStep; rank 0 writes.
  absl::Status Log(const MetricFields& fields, const std::string& text, bool stays = true);
  void CompleteStep(int consecutive_skipped);
  // True on all ranks if one of them received a stop signal or passes `mine`.
  absl::StatusOr<bool> AnyStop(bool mine = false);

  // Checkpoints. All ranks call these functions together.

  // Called after each step: begins a checkpoint if the configuration asks for one, and advances the
  // previous one without waiting.
  absl::Status Checkpoint();
  // Waits until the checkpoint that was begun is written.
  absl::Status FinishCheckpoint();
  // Writes a checkpoint of the completed steps, if there is none, and waits for it.
  absl::Status SaveCompletedSteps();

  // The end of a run. If the run was not stopped, rank 0 writes the trained policy.
  absl::StatusOr<TrainingOutcome> Finish(bool stopped);
  // The end of a failed run: saves the completed steps if this is the only rank, since with several
  // ranks perhaps only this one failed. Returns `error`.
  absl::Status Fail(const absl::Status& error);

  // Rank 0 logs a line, beside the progress bar.
  void Say(const std::string& text, LogLevel level = LogLevel::kInfo);
  // Tells the user that the current step's update was skipped; `path` is the dump of its gradient.
  // Does nothing if `path` is empty.
  void SayNonFinite(const std::string& path);
  // Updates the text behind the progress bar.
  void Tick(const std::string& text);
  void EndProgress() { progress_.reset(); }

  int64_t step() const { return state_.step; }  // completed steps
  int64_t total_steps() const { return total_steps_; }
  bool complete() const { return step() == total_steps_; }
  bool stop_requested() const { return stop_.requested(); }
  // Consecutive skipped updates at the checkpoint that was restored.
  int consecutive_skipped() const { return state_.consecutive_skipped; }
  const std::string& dir() const { return dir_; }
  // Folder for dumps of non-finite gradients (nonfinite_gradient.h).
  std::string NonFiniteGradientDir() const { return dir_ + "/nonfinite_gradients"; }
  int threads() const { return threads_; }
  // The value of the configuration, or the default for the policy's device.
  int64_t micro_batch_tokens() const { return config_.micro_batch_tokens; }
  Policy& policy() { return policy_; }
  AdamW* optimizer() { return optimizer_.get(); }
  StartupTimer& startup_timer() { return startup_timer_; }

 private:
  // The fields that both configurations have.
  struct CommonConfig {
    const google::protobuf::Message* all;
    PolicyConfig policy;
    OptimizerConfig optimizer;
    CheckpointConfig checkpoint;
    uint64_t seed;
    int threads;
    int64_t micro_batch_tokens;
    double memory_gib;
    std::string output_dir;
  };
  TrainingRun(TrainingRunOptions options, CommonConfig config, ProcessGroup* ranks,
              ProcessGroup* learners, const SignalHandler& stop);
  absl::Status OpenFolderOnRoot();
  absl::Status StoreConfig();
  absl::Status LoadNewest();
  absl::Status BeginCheckpoint();
  // If `status`, returned by the store, is an error, notes that the newest checkpoint does not
  // exist.
  absl::Status NoteWritten(const absl::Status& status);

  const TrainingRunOptions options_;
  CommonConfig config_;
  ProcessGroup& ranks_;
  ProcessGroup* const learners_;
  const SignalHandler& stop_;
  const std::string dir_;
  std::unique_ptr<RunDir> run_dir_;  // rank 0 only
  Policy policy_;
  std::unique_ptr<AdamW> optimizer_;
  CheckpointStore store_;
  std::unique_ptr<MetricsLog> metrics_;  // rank 0 only
  std::unique_ptr<Progress> progress_;   // rank 0 only
  StartupTimer startup_timer_;
  TrainingState state_;
  int threads_ = 0;
  int64_t total_steps_ = 0;
  int64_t saved_step_ = -1;  // step of the newest checkpoint, complete or in progress
  bool weights_valid_ = true;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_RUN_TRAINING_RUN_H_
