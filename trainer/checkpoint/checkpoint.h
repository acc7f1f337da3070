// Checkpoints of a training run: everything that is needed to go on with bitwise the same numbers.
//
// <folder>/step_000020/
//   model/           config.json, model.safetensors in the type of training, tokenizer.json
//   optimizer.bin    or a file for each rank (optimizer_state.h), for any number of ranks to read
//   state.json       step, updates, seed, plan of the optimizer's files, what the program adds
//   manifest.json    size and digest (manifest.h) of every file above
// A checkpoint is written under another name, synced, and renamed as a whole: a folder step_* is
// complete or does not exist. Training goes on meanwhile: only the copy of the state into host
// memory keeps it waiting.
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
  // `keep`: number of newest checkpoints that stay. `ranks` must outlive this object; null: alone.
  // `folder` must be one that all ranks see. All but Steps and PathOf are called by all ranks
  // together, from the thread that may use `ranks`, and end the same on each.
  CheckpointStore(std::string folder, int keep, ProcessGroup* ranks = nullptr)
      : folder_(std::move(folder)), keep_(keep), ranks_(ranks) {}

  // Begins to write step_<state.step> (replacing one of the same step): waits for the one before
  // (Finish), copies the state, and leaves the rest to a thread. The checkpoint is there when a
  // later Poll has seen all ranks' files written, or after Finish; then those beyond `keep` are
  // removed. Rank 0's `state` counts.
  // On an error, of this call or of a later one that learns of it, the older checkpoints are
  // untouched and the message says which one is the newest.
  absl::Status Begin(const TrainingState& state, const Policy& policy, const AdamW& optimizer);
  // To be called now and then while training goes on: does what can be done without waiting. Costs
  // nothing while nothing is being written.
  absl::Status Poll();
  // Waits until the checkpoint that was begun is there.
  absl::Status Finish();
  // Begin and Finish.
  absl::Status Save(const TrainingState& state, const Policy& policy, const AdamW& optimizer);

  // Restores the newest checkpoint whose files match their manifest into `policy` and `optimizer`.
  // `expected` tells program and seed. A damaged one is passed over with a sentence in `warnings`;
  // nothing when there is no checkpoint at all; DataLoss when all are damaged.
  absl::StatusOr<std::optional<TrainingState>> LoadNewest(const TrainingState& expected,
                                                          Policy* policy, AdamW* optimizer,
                                                          std::vector<std::string>* warnings);

  // Steps that have a folder, ascending.
  absl::StatusOr<std::vector<int64_t>> Steps() const;
  std::string PathOf(int64_t step) const;

 private:
  bool is_root() const { return ranks_ == nullptr || ranks_->is_root(); }
  absl::Status AllReduceStatus(const absl::Status& status) const {
    return ranks_ == nullptr ? status : ranks_->AllReduceStatus(status);
  }
  // What the thread does for the checkpoint that was begun; the next stage begins on all ranks
  // together, once all have ended the one before.
  enum class Stage { kIdle, kWriting, kPublishing, kRemoving };

  absl::Status MakeFolder() const;
  void Start(Stage stage, std::function<absl::StatusOr<std::string>()> job);
  bool JobDone() const;
  // Waits for this rank's job and begins the next stage.
  absl::Status Advance();
  // Rank 0: manifest and the new name.
  absl::Status Publish(const std::vector<std::string>& described) const;
  absl::Status RemoveOld() const;
  // The error of a checkpoint that is not there, as a sentence.
  absl::Status NotWritten(const absl::Status& status) const;
  std::string WritingPath() const;

  // Each rank reads its share of the files for their checksums, as they can be hundreds of GB.
  absl::StatusOr<std::optional<int64_t>> NewestValid(std::vector<std::string>* warnings) const;
  absl::StatusOr<TrainingState> LoadFrom(const std::string& dir, const TrainingState& expected,
                                         Policy* policy, AdamW* optimizer) const;

  std::string folder_;
  int keep_;
  ProcessGroup* ranks_;
  CheckpointSnapshot snapshot_;
  Stage stage_ = Stage::kIdle;
  int64_t step_ = 0;  // of the checkpoint that was begun
  // Last: its end is waited for before the rest goes.
  std::future<absl::StatusOr<std::string>> job_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CHECKPOINT_CHECKPOINT_H_
