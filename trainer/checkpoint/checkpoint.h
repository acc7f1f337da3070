// Checkpoints of a training run, from which training resumes with bitwise equal results.
//
// <folder>/step_000020/
//   model/           config.json, model.safetensors in train_dtype, tokenizer.json
//   optimizer.bin    or one file per rank (optimizer_state.h), for any number of ranks to read
//   state.json       step, updates, seed, shard plan of the optimizer's files, program's extra
//   manifest.json    size and digest (manifest.h) of every file above
//
// A checkpoint is written under a temporary name, synced, and then renamed: a folder step_* is
// complete or does not exist. Training waits only for the copy of the state into CPU memory; the
// files are written in the background.
#ifndef TRITONRL_TRAINER_CHECKPOINT_CHECKPOINT_H_
#define TRITONRL_TRAINER_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parallel/process_group.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/optimizer_state.h"
#include "trainer/learner/policy.h"
#include "trainer/optimizer/adamw.h"

namespace tritonrl {

class CheckpointStore {
 public:
  // `keep`: number of newest checkpoints that are not removed. `ranks` must outlive this object;
  // null: one rank. All ranks must see `folder`. All ranks call each function except Steps and
  // PathOf together, from the thread that may use `ranks`, and all get the same status.
  CheckpointStore(std::string folder, int keep, ProcessGroup* ranks = nullptr)
      : folder_(std::move(folder)), keep_(keep), ranks_(ranks) {}

  // Begins to write step_<state.step>, which replaces an older checkpoint of this step: finishes
  // the previous checkpoint (Finish), copies the state, and starts a thread that writes the files.
  // The checkpoint exists after Finish, or once a later Poll has found all ranks' files written;
  // then checkpoints beyond `keep` are removed. The `state` of rank 0 is stored. An error, of this
  // call or of the later call that reports it, leaves older checkpoints untouched, and the message
  // names the newest of them.
  absl::Status Begin(const TrainingState& state, const Policy& policy, const AdamW& optimizer);
  // Advances a checkpoint without waiting; called regularly during training. Returns an error of
  // the writing thread. Free if no checkpoint is being written.
  absl::Status Poll();
  // Waits until the checkpoint that was begun exists.
  absl::Status Finish();
  // Begin and Finish.
  absl::Status Save(const TrainingState& state, const Policy& policy, const AdamW& optimizer);

  // Restores the newest checkpoint whose files match their manifest into `policy` and `optimizer`.
  // Each damaged checkpoint is skipped and adds a sentence to `warnings`. Returns nullopt if there
  // is no checkpoint. Errors: DataLoss if all are damaged; FailedPrecondition if program or seed
  // differ from `expected`, or the model has another shape.
  absl::StatusOr<std::optional<TrainingState>> LoadNewest(const TrainingState& expected,
                                                          Policy* policy, AdamW* optimizer,
                                                          std::vector<std::string>* warnings);

  // Steps that have a checkpoint folder, ascending.
  absl::StatusOr<std::vector<int64_t>> Steps() const;
  std::string PathOf(int64_t step) const;

 private:
  bool is_root() const { return ranks_ == nullptr || ranks_->is_root(); }
  absl::Status AllReduceStatus(const absl::Status& status) const {
    return ranks_ == nullptr ? status : ranks_->AllReduceStatus(status);
  }
  // The current job of the thread. All ranks begin a stage together, after all have ended the
  // previous one.
  enum class Stage { kIdle, kWriting, kPublishing, kRemoving };

  absl::Status MakeFolder() const;
  void Start(Stage stage, std::function<absl::StatusOr<std::string>()> job);
  bool JobDone() const;
  // Waits for this rank's job and then begins the next stage.
  absl::Status Advance();
  // On rank 0: writes the manifest and renames the folder.
  absl::Status Publish(const std::vector<std::string>& described) const;
  absl::Status RemoveOld() const;
  // Turns `status` into the error of a checkpoint that was not written, and removes its folder.
  absl::Status NotWritten(const absl::Status& status) const;
  std::string WritingPath() const;

  // Each rank verifies the checksums of its share of the files, as they can be hundreds of GB.
  absl::StatusOr<std::optional<int64_t>> NewestValid(std::vector<std::string>* warnings) const;
  absl::StatusOr<TrainingState> LoadFrom(const std::string& dir, const TrainingState& expected,
                                         Policy* policy, AdamW* optimizer) const;

  std::string folder_;
  int keep_;
  ProcessGroup* ranks_;
  CheckpointSnapshot snapshot_;
  Stage stage_ = Stage::kIdle;
  int64_t step_ = 0;  // step of the checkpoint that was begun last
  // The last member: its destructor waits for the thread before the members above are destroyed.
  std::future<absl::StatusOr<std::string>> job_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CHECKPOINT_CHECKPOINT_H_
