#include "trainer/checkpoint/optimizer_state.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/torch_runtime.h"
#include "nlohmann/json.hpp"
#include "trainer/checkpoint/manifest.h"

namespace tritonrl {

bool CpuCopy::Fits(const at::Tensor& source) const {
  if (elements_ != source.numel()) return false;
  return chunks_.empty() ||
         (chunks_[0].scalar_type() == source.scalar_type() && pinned_ == source.is_cuda());
}

void CpuCopy::Take(const at::Tensor& source) {
  TORCH_CHECK(source.is_contiguous(), "CpuCopy takes contiguous tensors");
  const at::Tensor flat = source.view({-1});
  const int64_t per_chunk = chunk_bytes_ / static_cast<int64_t>(source.element_size());
  if (!Fits(source)) {
    chunks_.clear();  // frees the old chunks before new ones are allocated
    elements_ = source.numel();
    pinned_ = source.is_cuda();
    const at::TensorOptions options =
        at::TensorOptions(source.scalar_type()).pinned_memory(pinned_);
    for (int64_t begin = 0; begin < elements_; begin += per_chunk) {
      chunks_.push_back(at::empty({std::min(per_chunk, elements_ - begin)}, options));
    }
  }
  for (size_t i = 0; i < chunks_.size(); ++i) {
    // All copies are in one stream, so waiting for the last one waits for all.
    chunks_[i].copy_(flat.narrow(0, static_cast<int64_t>(i) * per_chunk, chunks_[i].numel()),
                     /*non_blocking=*/i + 1 < chunks_.size());
  }
}

void CpuCopy::CopyTo(const at::Tensor& target) const {
  TORCH_CHECK(target.is_cpu() && target.is_contiguous() && target.numel() == elements_ &&
                  (chunks_.empty() || chunks_[0].scalar_type() == target.scalar_type()),
              "CpuCopy::CopyTo needs a tensor like the one taken");
  char* to = static_cast<char*>(target.mutable_data_ptr());
  for (const at::Tensor& chunk : chunks_) {
    std::memcpy(to, chunk.const_data_ptr(), chunk.nbytes());
    to += chunk.nbytes();
  }
}

namespace {

constexpr int64_t kWidth = 4;  // bytes per element
constexpr int kReaders = 4;    // threads per rank; other ranks of the machine read too

// An open file of one rank whose size was checked.
class SavedShard {
 public:
  SavedShard(const std::string& dir, const ZeroShardPlan& plan, int rank)
      : path_(JoinPath(dir, OptimizerFileName(rank, plan.ranks()))), plan_(plan), rank_(rank) {}

  absl::Status Open(int64_t tensors) {
    const int64_t wanted = tensors * plan_.LocalSize(rank_) * kWidth;
    if (!FileExists(path_)) return absl::DataLossError(absl::StrCat(path_, " is missing"));
    ASSIGN_OR_RETURN(const int64_t size, FileSize(path_));
    if (size != wanted) {
      return absl::DataLossError(absl::StrCat(path_, " has ", size,
                                              " bytes but this model and train_dtype need ", wanted,
                                              "; it is from another model"));
    }
    fd_.emplace(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return fd_->valid() ? absl::OkStatus() : ErrnoStatus(errno, "open", path_);
  }

  // Reads the part of `wanted` (a range in one bucket of the saved plan) of tensor number `tensor`
  // that this file holds. `data` is the destination of the beginning of `wanted`.
  absl::Status Read(int64_t tensor, int64_t bucket, const FlatRange& wanted, char* data) const {
    const FlatRange piece = plan_.Shard(bucket, rank_);
    const FlatRange both = {std::max(piece.begin, wanted.begin), std::min(piece.end, wanted.end)};
    if (both.size() <= 0) return absl::OkStatus();
    const int64_t element = tensor * plan_.LocalSize(rank_) + plan_.LocalOffset(bucket, rank_) +
                            both.begin - piece.begin;
    return ReadAt(fd_->get(), element * kWidth, both.size() * kWidth,
                  data + (both.begin - wanted.begin) * kWidth, path_);
  }

 private:
  const std::string path_;
  const ZeroShardPlan& plan_;
  const int rank_;
  std::optional<ScopedFd> fd_;
};

// Reads a range of the flat buffer, which may span several buckets and files.
absl::Status ReadRange(const std::vector<std::unique_ptr<SavedShard>>& shards,
                       const ZeroShardPlan& saved, int64_t tensor, const FlatRange& range,
                       char* data) {
  for (int64_t bucket = range.begin / saved.bucket_elements();
       bucket < saved.buckets() && saved.Bucket(bucket).begin < range.end; ++bucket) {
    for (const auto& shard : shards) {
      const FlatRange whole = saved.Bucket(bucket);
      const FlatRange part = {std::max(whole.begin, range.begin), std::min(whole.end, range.end)};
      RETURN_IF_ERROR(
          shard->Read(tensor, bucket, part, data + (part.begin - range.begin) * kWidth));
    }
  }
  return absl::OkStatus();
}

// Reads this rank's shard `piece` of one bucket of tensor `number` into `place`. `room` is a pinned
// buffer for GPU tensors, reused by later calls.
absl::Status ReadPiece(const std::vector<std::unique_ptr<SavedShard>>& shards,
                       const ZeroShardPlan& saved, int64_t number, const FlatRange& piece,
                       const at::Tensor& place, at::Tensor* room) {
  const bool in_place = place.is_cpu();
  if (!in_place && (!room->defined() || room->numel() < piece.size())) {
    *room = at::empty({piece.size()}, place.options().device(at::kCPU).pinned_memory(true));
  }
  const at::Tensor host = in_place ? place : room->narrow(0, 0, piece.size());
  RETURN_IF_ERROR(ReadRange(shards, saved, number, piece, static_cast<char*>(host.data_ptr())));
  if (!in_place) place.copy_(host);
  return absl::OkStatus();
}

}  // namespace

std::string OptimizerFileName(int rank, int ranks) {
  if (ranks == 1) return "optimizer.bin";
  return absl::StrFormat("optimizer_%03d_of_%03d.bin", rank, ranks);
}

std::vector<at::Tensor> OptimizerStateTensors(const AdamW& optimizer) {
  std::vector<at::Tensor> tensors = {optimizer.first_moment(), optimizer.second_moment()};
  if (!optimizer.master_is_weights()) tensors.insert(tensors.begin(), optimizer.master());
  return tensors;
}

absl::Status WriteOptimizerState(const std::string& path, const std::vector<CpuCopy>& tensors) {
  ScopedFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, "create", path);
  for (const CpuCopy& tensor : tensors) {
    for (const at::Tensor& chunk : tensor.chunks()) {
      const auto* data = static_cast<const char*>(chunk.const_data_ptr());
      RETURN_IF_ERROR(WriteAll(fd.get(), absl::string_view(data, chunk.nbytes()), path));
    }
  }
  const bool written = fsync(fd.get()) == 0 && fd.Close() == 0;
  return written ? absl::OkStatus() : ErrnoStatus(errno, "write", path);
}

absl::Status ReadOptimizerState(const std::string& dir, const ZeroShardPlan& saved,
                                AdamW* optimizer) {
  const ZeroShardPlan& plan = optimizer->plan();
  const std::vector<at::Tensor> tensors = OptimizerStateTensors(*optimizer);
  if (saved.flat_size() != plan.flat_size()) {
    return absl::DataLossError(absl::StrCat(dir, " holds the optimizer's state of ",
                                            saved.flat_size(), " parameters but this model has ",
                                            plan.flat_size(), "; it is from another model"));
  }
  std::vector<std::unique_ptr<SavedShard>> shards;
  for (int rank = 0; rank < saved.ranks(); ++rank) {
    shards.push_back(std::make_unique<SavedShard>(dir, saved, rank));
    RETURN_IF_ERROR(shards.back()->Open(static_cast<int64_t>(tensors.size())));
  }
  const int rank = optimizer->rank();
  std::vector<at::Tensor> rooms(kReaders);
  RETURN_IF_ERROR(ParallelFor(
      kReaders, static_cast<int64_t>(tensors.size()) * plan.buckets(), [&](int thread, int64_t i) {
        return CatchTorch(
            "reading the optimizer's state", "use a smaller model or more memory", [&] {
              const int64_t tensor = i / plan.buckets(), bucket = i % plan.buckets();
              const FlatRange piece = plan.Shard(bucket, rank);
              return ReadPiece(
                  shards, saved, tensor, piece,
                  tensors[tensor].narrow(0, plan.LocalOffset(bucket, rank), piece.size()),
                  &rooms[thread]);
            });
      }));
  if (optimizer->master_is_weights()) optimizer->ResetMasterFromWeights();
  return absl::OkStatus();
}

namespace {

std::string StateText(const TrainingState& state, const AdamW& optimizer) {
  const ZeroShardPlan& plan = optimizer.plan();
  const nlohmann::json json = {{"program", state.program},
                               {"step", state.step},
                               {"seed", state.seed},
                               {"updates", optimizer.updates()},
                               {"consecutive_skipped", state.consecutive_skipped},
                               {"extra", state.extra},
                               {"optimizer",
                                {{"ranks", plan.ranks()},
                                 {"bucket_elements", plan.bucket_elements()},
                                 {"flat_size", plan.flat_size()}}}};
  return json.dump(1) + "\n";
}

}  // namespace

absl::Status CheckpointSnapshot::Take(const TrainingState& state, const Policy& policy,
                                      const AdamW& optimizer) {
  rank_ = optimizer.rank();
  optimizer_file_ = OptimizerFileName(rank_, optimizer.plan().ranks());
  if (rank_ == 0) {
    state_ = StateText(state, optimizer);
    policy_.config = policy.config;
    policy_.folder = policy.folder;
    // What SavePolicy writes about the end of a response.
    policy_.chat = policy.chat;
    policy_.stop_tokens = policy.stop_tokens;
    dtype_ = policy.weights->dtype();
  }
  return CatchTorch("copying the state into CPU memory", "use a smaller model or more memory", [&] {
    const std::vector<at::Tensor> stored = OptimizerStateTensors(optimizer);
    optimizer_.resize(stored.size());
    for (size_t i = 0; i < stored.size(); ++i) optimizer_[i].Take(stored[i]);
    if (rank_ == 0) weights_.Take(policy.weights->flat());
    return absl::OkStatus();
  });
}

absl::Status CheckpointSnapshot::WriteModel(const std::string& dir) const {
  Policy policy = policy_;
  RETURN_IF_ERROR(CatchTorch("saving the policy", "use a smaller model or more memory", [&] {
    policy.weights = std::make_shared<Weights>(policy.config, at::kCPU, dtype_);
    weights_.CopyTo(policy.weights->flat());
    return absl::OkStatus();
  }));
  return SavePolicy(policy, dir, dtype_ == at::kBFloat16 ? BFLOAT16 : FLOAT32);
}

absl::StatusOr<std::string> CheckpointSnapshot::Write(const std::string& dir) const {
  std::vector<std::string> files = {optimizer_file_};
  if (rank_ == 0) {
    RETURN_IF_ERROR(WriteModel(JoinPath(dir, "model")));
    RETURN_IF_ERROR(WriteFileAtomic(JoinPath(dir, "state.json"), state_));
    files.push_back("model");
    files.push_back("state.json");
  }
  RETURN_IF_ERROR(WriteOptimizerState(JoinPath(dir, optimizer_file_), optimizer_));
  return DescribeFiles(dir, files);
}

}  // namespace tritonrl
