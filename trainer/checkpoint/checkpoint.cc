#include "trainer/checkpoint/checkpoint.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "model/torch_runtime.h"
#include "model/weights/weights_load.h"
#include "nlohmann/json.hpp"
#include "trainer/checkpoint/optimizer_state.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr char kPrefix[] = "step_";
constexpr char kTemporary[] = ".writing_";

// The shard plan with which the optimizer's state was saved.
ZeroShardPlan SavedPlan(const Json& state, const ZeroShardPlan& mine) {
  // Older checkpoints have one file.
  if (!state.contains("optimizer")) return ZeroShardPlan(mine.flat_size(), 1);
  const Json& plan = state.at("optimizer");
  const int ranks = plan.at("ranks").get<int>();
  const int64_t bucket = plan.at("bucket_elements").get<int64_t>();
  return ZeroShardPlan(plan.at("flat_size").get<int64_t>(), std::max(1, ranks),
                       std::max<int64_t>(1, bucket));
}

}  // namespace

std::string CheckpointStore::PathOf(int64_t step) const {
  return JoinPath(folder_, absl::StrFormat("%s%06d", kPrefix, step));
}

absl::StatusOr<std::vector<int64_t>> CheckpointStore::Steps() const {
  std::vector<int64_t> steps;
  if (!DirectoryExists(folder_)) return steps;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder_));
  for (const std::string& name : names) {
    int64_t step;
    if (absl::StartsWith(name, kPrefix) &&
        absl::SimpleAtoi(name.substr(sizeof(kPrefix) - 1), &step)) {
      steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string CheckpointStore::WritingPath() const {
  return JoinPath(folder_, absl::StrCat(kTemporary, BaseName(PathOf(step_))));
}

// Also removes unfinished checkpoints of a killed process.
absl::Status CheckpointStore::MakeFolder() const {
  RETURN_IF_ERROR(CreateDirectories(folder_));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder_));
  for (const std::string& name : names) {
    if (absl::StartsWith(name, kTemporary)) RETURN_IF_ERROR(RemoveTree(JoinPath(folder_, name)));
  }
  return CreateDirectories(WritingPath());
}

void CheckpointStore::Start(Stage stage, std::function<absl::StatusOr<std::string>()> job) {
  stage_ = stage;
  const auto caught = [job = std::move(job)] {
    absl::StatusOr<std::string> result = absl::InternalError("not done");
    const absl::Status status =
        CatchTorch("writing a checkpoint", "use a smaller model or more memory", [&] {
          result = job();
          return result.status();
        });
    return status.ok() ? std::move(result) : absl::StatusOr<std::string>(status);
  };
  try {
    job_ = std::async(std::launch::async, caught);
  } catch (const std::system_error&) {  // no thread available: run the job here
    std::promise<absl::StatusOr<std::string>> done;
    job_ = done.get_future();
    done.set_value(caught());
  }
}

bool CheckpointStore::JobDone() const {
  return job_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

absl::Status CheckpointStore::Begin(const TrainingState& state, const Policy& policy,
                                    const AdamW& optimizer) {
  RETURN_IF_ERROR(Finish());
  step_ = state.step;
  absl::Status status = AllReduceStatus(is_root() ? MakeFolder() : absl::OkStatus());
  if (status.ok()) status = AllReduceStatus(snapshot_.Take(state, policy, optimizer));
  if (!status.ok()) return NotWritten(status);
  Start(Stage::kWriting, [this, path = WritingPath()] { return snapshot_.Write(path); });
  return absl::OkStatus();
}

absl::Status CheckpointStore::Advance() {
  const Stage ended = stage_;
  const absl::StatusOr<std::string> result = job_.get();
  stage_ = Stage::kIdle;
  const absl::Status status = AllReduceStatus(result.status());
  if (ended == Stage::kRemoving) return status;
  if (!status.ok()) return NotWritten(status);
  std::function<absl::Status()> next = [this] { return RemoveOld(); };
  if (ended == Stage::kWriting) {
    std::vector<std::string> described = {*result};
    if (ranks_ != nullptr) {
      absl::StatusOr<std::vector<std::string>> all = ranks_->AllGather(*result);
      if (!all.ok()) return NotWritten(all.status());
      described = *std::move(all);
    }
    next = [this, described = std::move(described)] { return Publish(described); };
  }
  Start(ended == Stage::kWriting ? Stage::kPublishing : Stage::kRemoving,
        [root = is_root(), next = std::move(next)]() -> absl::StatusOr<std::string> {
          if (root) RETURN_IF_ERROR(next());
          return std::string();
        });
  return absl::OkStatus();
}

absl::Status CheckpointStore::Poll() {
  while (stage_ != Stage::kIdle) {
    bool waiting = !JobDone();
    if (ranks_ != nullptr) {
      ASSIGN_OR_RETURN(waiting, ranks_->Any(waiting));
    }
    if (waiting) return absl::OkStatus();
    RETURN_IF_ERROR(Advance());
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::Finish() {
  while (stage_ != Stage::kIdle) RETURN_IF_ERROR(Advance());
  return absl::OkStatus();
}

absl::Status CheckpointStore::Save(const TrainingState& state, const Policy& policy,
                                   const AdamW& optimizer) {
  RETURN_IF_ERROR(Begin(state, policy, optimizer));
  return Finish();
}

absl::Status CheckpointStore::Publish(const std::vector<std::string>& described) const {
  const std::string writing = WritingPath(), final_path = PathOf(step_);
  RETURN_IF_ERROR(WriteManifest(writing, described));
  // A checkpoint of the same step (of a resumed run with another `every`) has the same contents, so
  // a crash between these two calls is the only way to lose it.
  RETURN_IF_ERROR(RemoveTree(final_path));
  RETURN_IF_ERROR(RenameFile(writing, final_path));
  return SyncDirectory(folder_);
}

absl::Status CheckpointStore::NotWritten(const absl::Status& status) const {
  if (is_root()) RemoveTree(WritingPath()).IgnoreError();
  const absl::StatusOr<std::vector<int64_t>> steps = Steps();
  const std::string newest =
      steps.ok() && !steps->empty()
          ? absl::StrCat("the checkpoint of step ", steps->back(), " is intact")
          : std::string("there is no earlier checkpoint");
  return absl::Status(status.code(),
                      absl::StrCat("the checkpoint of step ", step_, " was not written: ",
                                   std::string(status.message()), "; ", newest));
}

absl::Status CheckpointStore::RemoveOld() const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, Steps());
  for (size_t i = 0; i + static_cast<size_t>(std::max(1, keep_)) < steps.size(); ++i) {
    RETURN_IF_ERROR(RemoveTree(PathOf(steps[i])));
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingState> CheckpointStore::LoadFrom(const std::string& dir,
                                                        const TrainingState& expected,
                                                        Policy* policy, AdamW* optimizer) const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(dir, "state.json")));
  TrainingState state;
  int64_t updates = 0;
  std::optional<ZeroShardPlan> saved;
  try {
    const Json json = Json::parse(text);
    json.at("program").get_to(state.program);
    json.at("step").get_to(state.step);
    json.at("seed").get_to(state.seed);
    json.at("updates").get_to(updates);
    json.at("consecutive_skipped").get_to(state.consecutive_skipped);
    json.at("extra").get_to(state.extra);
    saved = SavedPlan(json, optimizer->plan());
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(dir, "/state.json: ", error.what()));
  }
  if (state.program != expected.program || state.seed != expected.seed) {
    return absl::FailedPreconditionError(absl::StrCat(
        dir, " is of ", state.program, " with seed ", state.seed, ", this run is ",
        expected.program, " with seed ", expected.seed, "; choose another output_dir"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Weights> weights,
                   LoadWeights(JoinPath(dir, "model"), policy->device(), policy->weights->dtype()));
  if (weights->flat().sizes() != policy->weights->flat().sizes()) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, " holds a model of another shape than policy.dir"));
  }
  at::Tensor(policy->weights->flat()).copy_(weights->flat());
  RETURN_IF_ERROR(ReadOptimizerState(dir, *saved, optimizer));
  optimizer->set_updates(updates);
  return state;
}

absl::StatusOr<std::optional<int64_t>> CheckpointStore::NewestValid(
    std::vector<std::string>* warnings) const {
  // All ranks use rank 0's list.
  absl::StatusOr<std::vector<int64_t>> steps = Steps();
  RETURN_IF_ERROR(AllReduceStatus(steps.status()));
  std::string list = absl::StrJoin(*steps, ",");
  if (ranks_ != nullptr) RETURN_IF_ERROR(ranks_->Broadcast(&list));
  steps->clear();
  for (const auto& word : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    int64_t step = 0;
    if (absl::SimpleAtoi(word, &step)) steps->push_back(step);
  }
  if (steps->empty()) return std::optional<int64_t>();
  const int rank = ranks_ == nullptr ? 0 : ranks_->rank();
  const int size = ranks_ == nullptr ? 1 : ranks_->size();
  for (size_t i = steps->size(); i-- > 0;) {
    const absl::Status status = AllReduceStatus(VerifyManifest(PathOf((*steps)[i]), rank, size));
    if (status.ok()) return std::optional<int64_t>((*steps)[i]);
    if (!absl::IsDataLoss(status) && !absl::IsNotFound(status)) return status;
    warnings->push_back(
        absl::StrCat("the checkpoint of step ", (*steps)[i],
                     " is damaged and is passed over: ", std::string(status.message())));
  }
  return absl::DataLossError(absl::StrCat("no checkpoint in ", folder_, " can be used (",
                                          warnings->back(), "); remove ", folder_,
                                          " to start again from the first step"));
}

absl::StatusOr<std::optional<TrainingState>> CheckpointStore::LoadNewest(
    const TrainingState& expected, Policy* policy, AdamW* optimizer,
    std::vector<std::string>* warnings) {
  RETURN_IF_ERROR(Finish());
  ASSIGN_OR_RETURN(const std::optional<int64_t> newest, NewestValid(warnings));
  if (!newest.has_value()) return std::optional<TrainingState>();
  absl::StatusOr<TrainingState> state = absl::InternalError("not loaded");
  const absl::Status status =
      CatchTorch(PathOf(*newest), "use a larger device or a smaller model", [&] {
        state = LoadFrom(PathOf(*newest), expected, policy, optimizer);
        return state.status();
      });
  RETURN_IF_ERROR(AllReduceStatus(status));
  return std::optional<TrainingState>(*std::move(state));
}

}  // namespace tritonrl
