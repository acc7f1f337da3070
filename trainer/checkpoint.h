// Checkpoints of a training run: everything that is needed to go on with bitwise the same numbers.
//
// <folder>/step_000020/
//   model/           config.json, model.safetensors in the type of training, tokenizer.json
//   optimizer.bin    or a file for each rank (optimizer_file.h), for any number of ranks to read
//   state.json       step, updates, seed, plan of the optimizer's files, what the program adds
//   manifest.json    size and SHA-256 of every file above
// A checkpoint is written under another name, synced, and renamed as a whole: a folder step_* is
// complete or does not exist.
#ifndef TRITONRL_TRAINER_CHECKPOINT_H_
#define TRITONRL_TRAINER_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/adamw.h"
#include "trainer/data_parallel.h"
#include "trainer/policy.h"

namespace tritonrl {

struct TrainingState {
  std::string program;  // "sft", "grpo_hrd": a checkpoint of another program is refused
  int64_t step = 0;     // steps done
  // Every draw of a run is keyed by (seed, step, ...), so this pair is the whole state of the
  // random numbers. A checkpoint of another seed is refused.
  uint64_t seed = 0;
  int skipped_in_a_row = 0;                  // updates left out for a gradient that was not finite
  std::map<std::string, std::string> extra;  // what else the program must keep
};

class CheckpointStore {
 public:
  // `keep`: number of newest checkpoints that stay. `ranks` must outlive this object; null: alone.
  // `folder` must be one that all ranks see. Save and LoadNewest are called by all ranks together
  // and end the same on each.
  CheckpointStore(std::string folder, int keep, DataParallel* ranks = nullptr)
      : folder_(std::move(folder)), keep_(keep), ranks_(ranks) {}

  // Writes step_<state.step> (replacing one of the same step), then removes those beyond `keep`. On
  // an error the older checkpoints are untouched and the message says which one is the newest. Rank
  // 0's `state` counts.
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
  absl::Status Agree(const absl::Status& status) const {
    return ranks_ == nullptr ? status : ranks_->Agree(status);
  }
  // What this rank writes into `dir`; its files with size and checksum, as JSON.
  absl::Status WriteMine(const std::string& dir, const TrainingState& state, const Policy& policy,
                         const AdamW& optimizer) const;
  absl::StatusOr<std::string> DescribeMine(const std::string& dir, const AdamW& optimizer) const;
  // All ranks' files, and the new name.
  absl::Status Write(const std::string& writing, const std::string& final_path,
                     const TrainingState& state, const Policy& policy,
                     const AdamW& optimizer) const;
  // Manifest and the new name, by rank 0.
  absl::Status Publish(const std::string& writing, const std::string& final_path,
                       const std::vector<std::string>& described) const;
  // Each rank reads its share of the files for their checksums, as they can be hundreds of GB.
  absl::StatusOr<std::optional<int64_t>> NewestSound(std::vector<std::string>* warnings) const;
  absl::StatusOr<TrainingState> LoadFrom(const std::string& dir, const TrainingState& expected,
                                         Policy* policy, AdamW* optimizer) const;
  absl::Status RemoveOld() const;

  std::string folder_;
  int keep_;
  DataParallel* ranks_;
};

// Compares the files of `dir` with its manifest.json. The error names the file and what differs:
// missing, shorter or longer than written, or other contents. With `ranks` above 1 only every
// `ranks`-th file, from number `rank` on.
absl::Status VerifyManifest(const std::string& dir, int rank = 0, int ranks = 1);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_CHECKPOINT_H_
