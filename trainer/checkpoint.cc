#include "trainer/checkpoint.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "trainer/optimizer_file.h"
#include "trainer/torch_status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr char kPrefix[] = "step_";
constexpr char kTemporary[] = ".writing_";

// SHA-256 of a file, mapped so that a large one needs no copy in memory.
absl::StatusOr<std::string> HashFile(const std::string& path) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  if (size == 0) return Sha256Hex("");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);
  if (data == MAP_FAILED) return ErrnoStatus(error, "read", path);
  std::string digest = Sha256Hex(absl::string_view(static_cast<const char*>(data), size));
  munmap(data, size);
  return digest;
}

// Relative paths of all files below `dir`, sorted.
absl::Status ListFiles(const std::string& dir, const std::string& below,
                       std::vector<std::string>* files) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(JoinPath(dir, below)));
  for (const std::string& name : names) {
    const std::string relative = below.empty() ? name : JoinPath(below, name);
    if (DirectoryExists(JoinPath(dir, relative))) {
      RETURN_IF_ERROR(ListFiles(dir, relative, files));
    } else {
      files->push_back(relative);
    }
  }
  return absl::OkStatus();
}

// Size and checksum of one file of `dir`.
absl::StatusOr<Json> DescribeFile(const std::string& dir, const std::string& file) {
  const std::string path = JoinPath(dir, file);
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  ASSIGN_OR_RETURN(const std::string digest, HashFile(path));
  return Json{{"size", size}, {"sha256", digest}};
}

absl::Status SyncDirectory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  return result == 0 ? absl::OkStatus() : ErrnoStatus(error, "sync", path);
}

std::string StateText(const TrainingState& state, const AdamW& optimizer) {
  const ShardPlan& plan = optimizer.plan();
  Json json = {{"program", state.program},
               {"step", state.step},
               {"seed", state.seed},
               {"updates", optimizer.updates()},
               {"skipped_in_a_row", state.skipped_in_a_row},
               {"extra", state.extra},
               {"optimizer",
                {{"ranks", plan.ranks()},
                 {"bucket_elements", plan.bucket_elements()},
                 {"flat_size", plan.flat_size()}}}};
  return json.dump(1) + "\n";
}

// How the optimizer's state was spread over ranks when it was saved.
ShardPlan SavedPlan(const Json& state, const ShardPlan& mine) {
  if (!state.contains("optimizer")) return ShardPlan(mine.flat_size(), 1);  // one file, as once
  const Json& plan = state.at("optimizer");
  const int ranks = plan.at("ranks").get<int>();
  const int64_t bucket = plan.at("bucket_elements").get<int64_t>();
  return ShardPlan(plan.at("flat_size").get<int64_t>(), std::max(1, ranks),
                   std::max<int64_t>(1, bucket));
}

}  // namespace

absl::Status VerifyManifest(const std::string& dir, int rank, int ranks) {
  const std::string path = JoinPath(dir, "manifest.json");
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const Json manifest = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (manifest.is_discarded() || !manifest.contains("files") || !manifest["files"].is_object()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  int number = 0;
  for (const auto& [name, entry] : manifest["files"].items()) {
    if (number++ % ranks != rank) continue;
    const std::string file = JoinPath(dir, name);
    if (!FileExists(file)) return absl::DataLossError(absl::StrCat(file, " is missing"));
    ASSIGN_OR_RETURN(const int64_t size, FileSize(file));
    const int64_t wanted = entry.value("size", int64_t{-1});
    if (size != wanted) {
      return absl::DataLossError(absl::StrCat(file, " has ", size, " bytes but ", wanted,
                                              " were written: it is truncated"));
    }
    ASSIGN_OR_RETURN(const std::string digest, HashFile(file));
    if (digest != entry.value("sha256", "")) {
      return absl::DataLossError(absl::StrCat(file, " does not match its checksum"));
    }
  }
  return absl::OkStatus();
}

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

absl::Status CheckpointStore::WriteMine(const std::string& dir, const TrainingState& state,
                                        const Policy& policy, const AdamW& optimizer) const {
  if (is_root()) {
    const FloatType dtype = policy.weights->dtype() == at::kBFloat16 ? BFLOAT16 : FLOAT32;
    RETURN_IF_ERROR(SavePolicy(policy, JoinPath(dir, "model"), dtype));
    RETURN_IF_ERROR(WriteFileAtomic(JoinPath(dir, "state.json"), StateText(state, optimizer)));
  }
  return CatchTorch("saving the optimizer", "use a smaller model",
                    [&] { return WriteOptimizer(dir, optimizer); });
}

// Each rank reads its own file for the checksum; rank 0 also the model's.
absl::StatusOr<std::string> CheckpointStore::DescribeMine(const std::string& dir,
                                                          const AdamW& optimizer) const {
  std::vector<std::string> files;
  if (is_root()) {
    RETURN_IF_ERROR(ListFiles(dir, "model", &files));
    files.push_back("state.json");
  }
  files.push_back(OptimizerFileName(optimizer.rank(), optimizer.plan().ranks()));
  Json entries = Json::object();
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(entries[file], DescribeFile(dir, file));
  }
  return entries.dump();
}

absl::Status CheckpointStore::Write(const std::string& writing, const std::string& final_path,
                                    const TrainingState& state, const Policy& policy,
                                    const AdamW& optimizer) const {
  absl::Status status;
  if (is_root()) {
    status = CreateDirectories(folder_);
    if (status.ok()) status = RemoveTree(writing);  // left by a kill
    if (status.ok()) status = CreateDirectories(writing);
  }
  RETURN_IF_ERROR(Agree(status));
  std::string described;
  status = WriteMine(writing, state, policy, optimizer);
  if (status.ok()) {
    absl::StatusOr<std::string> mine = DescribeMine(writing, optimizer);
    status = mine.status();
    if (mine.ok()) described = *std::move(mine);
  }
  RETURN_IF_ERROR(Agree(status));
  std::vector<std::string> all = {described};
  if (ranks_ != nullptr) {
    ASSIGN_OR_RETURN(all, ranks_->AllGather(described));
  }
  return Agree(is_root() ? Publish(writing, final_path, all) : absl::OkStatus());
}

absl::Status CheckpointStore::Publish(const std::string& writing, const std::string& final_path,
                                      const std::vector<std::string>& described) const {
  Json manifest;
  for (const std::string& entries : described) manifest["files"].update(Json::parse(entries));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(writing, "manifest.json"), manifest.dump(1) + "\n"));
  RETURN_IF_ERROR(SyncDirectory(writing));
  // The same step again (a resumed run with other settings of `every`): same contents, so removing
  // the old one first loses nothing but the window between the two calls.
  RETURN_IF_ERROR(RemoveTree(final_path));
  RETURN_IF_ERROR(RenameFile(writing, final_path));
  return SyncDirectory(folder_);
}

absl::Status CheckpointStore::Save(const TrainingState& state, const Policy& policy,
                                   const AdamW& optimizer) {
  const std::string final_path = PathOf(state.step);
  const std::string writing = JoinPath(folder_, absl::StrCat(kTemporary, BaseName(final_path)));
  const absl::Status status = Write(writing, final_path, state, policy, optimizer);
  if (status.ok()) return Agree(is_root() ? RemoveOld() : absl::OkStatus());

  if (is_root()) RemoveTree(writing).IgnoreError();
  const absl::StatusOr<std::vector<int64_t>> steps = Steps();
  const std::string newest =
      steps.ok() && !steps->empty()
          ? absl::StrCat("the checkpoint of step ", steps->back(), " is intact")
          : std::string("there is no earlier checkpoint");
  return absl::Status(status.code(),
                      absl::StrCat("the checkpoint of step ", state.step, " was not written: ",
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
  std::optional<ShardPlan> saved;
  try {
    const Json json = Json::parse(text);
    json.at("program").get_to(state.program);
    json.at("step").get_to(state.step);
    json.at("seed").get_to(state.seed);
    json.at("updates").get_to(updates);
    json.at("skipped_in_a_row").get_to(state.skipped_in_a_row);
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
  ASSIGN_OR_RETURN(
      std::shared_ptr<Weights> weights,
      Weights::Load(JoinPath(dir, "model"), policy->device(), policy->weights->dtype()));
  if (weights->flat().sizes() != policy->weights->flat().sizes()) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, " holds a model of another shape than policy.dir"));
  }
  at::Tensor(policy->weights->flat()).copy_(weights->flat());
  RETURN_IF_ERROR(ReadOptimizer(dir, *saved, optimizer));
  optimizer->set_updates(updates);
  return state;
}

absl::StatusOr<std::optional<int64_t>> CheckpointStore::NewestSound(
    std::vector<std::string>* warnings) const {
  // Rank 0's list counts.
  absl::StatusOr<std::vector<int64_t>> steps = Steps();
  RETURN_IF_ERROR(Agree(steps.status()));
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
    const absl::Status status = Agree(VerifyManifest(PathOf((*steps)[i]), rank, size));
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
  ASSIGN_OR_RETURN(const std::optional<int64_t> newest, NewestSound(warnings));
  if (!newest.has_value()) return std::optional<TrainingState>();
  absl::StatusOr<TrainingState> state = absl::InternalError("not loaded");
  const absl::Status status =
      CatchTorch(PathOf(*newest), "use a larger device or a smaller model", [&] {
        state = LoadFrom(PathOf(*newest), expected, policy, optimizer);
        return state.status();
      });
  RETURN_IF_ERROR(Agree(status));
  return std::optional<TrainingState>(*std::move(state));
}

}  // namespace tritonrl
