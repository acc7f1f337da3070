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
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
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

absl::Status WriteManifest(const std::string& dir) {
  std::vector<std::string> files;
  RETURN_IF_ERROR(ListFiles(dir, "", &files));
  Json manifest;
  for (const std::string& file : files) {
    const std::string path = JoinPath(dir, file);
    ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
    ASSIGN_OR_RETURN(const std::string digest, HashFile(path));
    manifest["files"][file] = {{"size", size}, {"sha256", digest}};
  }
  return WriteFileAtomic(JoinPath(dir, "manifest.json"), manifest.dump(1) + "\n");
}

absl::Status WriteFully(int fd, const char* data, int64_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "write", path);
    data += written;
    size -= written;
  }
  return absl::OkStatus();
}

// Tensors one behind the other, without a header: sizes are known from the model's layout.
absl::Status WriteTensors(const std::string& path, const std::vector<at::Tensor>& tensors) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, "create", path);
  absl::Status status;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor host = tensor.cpu().contiguous();
    status = WriteFully(fd, static_cast<const char*>(host.const_data_ptr()),
                        static_cast<int64_t>(host.nbytes()), path);
    if (!status.ok()) break;
  }
  if (status.ok() && fsync(fd) != 0) status = ErrnoStatus(errno, "write", path);
  if (close(fd) != 0 && status.ok()) status = ErrnoStatus(errno, "write", path);
  return status;
}

absl::Status ReadTensors(const std::string& path, const std::vector<at::Tensor>& tensors) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  size_t expected = 0;
  for (const at::Tensor& tensor : tensors) expected += tensor.nbytes();
  if (bytes.size() != expected) {
    return absl::DataLossError(absl::StrCat(path, " has ", bytes.size(),
                                            " bytes but this model and ", "train_dtype need ",
                                            expected, "; it is from another model"));
  }
  size_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor host = tensor.device().is_cpu() ? tensor : tensor.cpu();
    std::copy_n(bytes.data() + offset, host.nbytes(), static_cast<char*>(host.mutable_data_ptr()));
    offset += host.nbytes();
    if (!tensor.device().is_cpu()) at::Tensor(tensor).copy_(host);
  }
  return absl::OkStatus();
}

// The optimizer's tensors in the order of optimizer.bin.
std::vector<at::Tensor> OptimizerTensors(const AdamW& optimizer) {
  std::vector<at::Tensor> tensors = {optimizer.first_moment(), optimizer.second_moment()};
  if (!optimizer.master().is_same(optimizer.weights()->flat())) {
    tensors.insert(tensors.begin(), optimizer.master());
  }
  return tensors;
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
  Json json = {{"program", state.program},
               {"step", state.step},
               {"seed", state.seed},
               {"updates", optimizer.updates()},
               {"skipped_in_a_row", state.skipped_in_a_row},
               {"extra", state.extra}};
  return json.dump(1) + "\n";
}

}  // namespace

absl::Status VerifyManifest(const std::string& dir) {
  const std::string path = JoinPath(dir, "manifest.json");
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const Json manifest = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (manifest.is_discarded() || !manifest.contains("files") || !manifest["files"].is_object()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  for (const auto& [name, entry] : manifest["files"].items()) {
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

absl::Status CheckpointStore::WriteAll(const std::string& dir, const TrainingState& state,
                                       const Policy& policy, const AdamW& optimizer) const {
  RETURN_IF_ERROR(CreateDirectories(dir));
  const FloatType dtype = policy.weights->dtype() == at::kBFloat16 ? BFLOAT16 : FLOAT32;
  RETURN_IF_ERROR(SavePolicy(policy, JoinPath(dir, "model"), dtype));
  RETURN_IF_ERROR(CatchTorch("saving the optimizer", "use a smaller model", [&]() -> absl::Status {
    return WriteTensors(JoinPath(dir, "optimizer.bin"), OptimizerTensors(optimizer));
  }));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(dir, "state.json"), StateText(state, optimizer)));
  return WriteManifest(dir);
}

absl::Status CheckpointStore::Save(const TrainingState& state, const Policy& policy,
                                   const AdamW& optimizer) {
  const std::string final_path = PathOf(state.step);
  const std::string writing = JoinPath(folder_, absl::StrCat(kTemporary, BaseName(final_path)));
  absl::Status status = CreateDirectories(folder_);
  if (status.ok()) status = RemoveTree(writing);  // left by a kill
  if (status.ok()) status = WriteAll(writing, state, policy, optimizer);
  if (status.ok()) status = SyncDirectory(writing);
  // The same step again (a resumed run with other settings of `every`): same contents, so removing
  // the old one first loses nothing but the window between the two calls.
  if (status.ok()) status = RemoveTree(final_path);
  if (status.ok()) status = RenameFile(writing, final_path);
  if (status.ok()) status = SyncDirectory(folder_);
  if (status.ok()) return RemoveOld();

  RemoveTree(writing).IgnoreError();
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
  RETURN_IF_ERROR(VerifyManifest(dir));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(dir, "state.json")));
  TrainingState state;
  int64_t updates = 0;
  try {
    const Json json = Json::parse(text);
    json.at("program").get_to(state.program);
    json.at("step").get_to(state.step);
    json.at("seed").get_to(state.seed);
    json.at("updates").get_to(updates);
    json.at("skipped_in_a_row").get_to(state.skipped_in_a_row);
    json.at("extra").get_to(state.extra);
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
  RETURN_IF_ERROR(ReadTensors(JoinPath(dir, "optimizer.bin"), OptimizerTensors(*optimizer)));
  at::Tensor(policy->weights->flat()).copy_(weights->flat());
  optimizer->set_updates(updates);
  optimizer->SyncWeights();
  return state;
}

absl::StatusOr<std::optional<TrainingState>> CheckpointStore::LoadNewest(
    const TrainingState& expected, Policy* policy, AdamW* optimizer,
    std::vector<std::string>* warnings) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, Steps());
  if (steps.empty()) return std::optional<TrainingState>();
  for (size_t i = steps.size(); i-- > 0;) {
    absl::StatusOr<TrainingState> state = absl::InternalError("not loaded");
    const absl::Status status = CatchTorch(
        PathOf(steps[i]), "use a larger device or a smaller model", [&]() -> absl::Status {
          state = LoadFrom(PathOf(steps[i]), expected, policy, optimizer);
          return state.status();
        });
    if (status.ok()) return std::optional<TrainingState>(*std::move(state));
    if (status.code() != absl::StatusCode::kDataLoss &&
        status.code() != absl::StatusCode::kNotFound) {
      return status;
    }
    warnings->push_back(
        absl::StrCat("the checkpoint of step ", steps[i],
                     " is damaged and is passed over: ", std::string(status.message())));
  }
  return absl::DataLossError(absl::StrCat("no checkpoint in ", folder_, " can be used (",
                                          warnings->back(), "); remove ", folder_,
                                          " to start again from the first step"));
}

}  // namespace tritonrl
