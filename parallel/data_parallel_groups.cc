// Groups of a job's ranks: beside the whole job, and the two levels that buckets can go through.

#include <mpi.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "parallel/data_parallel.h"
#include "parallel/gpu_collectives.h"
#include "parallel/gpu_communicator.h"
#include "parallel/job_communicator.h"
#include "parallel/mpi_buckets.h"
#include "parallel/mpi_pieces.h"
#include "parallel/mpi_wait.h"
#include "parallel/two_level_pieces.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Group(const std::vector<int>& members) {
  std::vector<bool> in(size_, false);
  for (const int member : members) {
    if (member < 0 || member >= size_ || in[member]) {
      return absl::InvalidArgumentError(absl::StrCat("a group cannot have rank ", member, " of ",
                                                     size_, " ranks, or has it twice"));
    }
    in[member] = true;
  }
  if (size_ == 1) {
    std::unique_ptr<DataParallel> group(members.empty() ? nullptr : new DataParallel(timeout_));
    if (group != nullptr) group->job_ = this;
    return group;
  }
  std::optional<int> color;
  if (in[rank_]) color = 0;
  const auto place = std::find(members.begin(), members.end(), rank_);
  ASSIGN_OR_RETURN(std::unique_ptr<DataParallel> group,
                   Divide(color, static_cast<int>(place - members.begin())));
  if (group == nullptr) return group;
  group->node_of_rank_.clear();
  for (const int member : members) group->node_of_rank_.push_back(node_of_rank_[member]);
  return group;
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Divide(std::optional<int> color,
                                                                   int key) {
  // MPI makes a communicator without a deadline, so make sure that all are there first.
  RETURN_IF_ERROR(Barrier());
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = MPI_Comm_split(comm_->comm, color.value_or(MPI_UNDEFINED), key, &comm);
  if (code != MPI_SUCCESS) return Noted(MpiError(code, "making a group of ranks"));
  std::unique_ptr<DataParallel> group;
  if (!color.has_value()) return group;
  group.reset(new DataParallel(timeout_));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &group->rank_);
  MPI_Comm_size(comm, &group->size_);
  group->named_ = group->rank_;
  group->local_rank_ = local_rank_;
  group->local_size_ = local_size_;
  group->node_ = node_;
  group->job_ = this;
  group->comm_ = std::make_unique<Communicator>();
  group->comm_->comm = comm;
  group->buckets_ = std::make_unique<MpiBuckets>(comm, group->rank_, group->size_, timeout_);
  return group;
}

absl::Status DataParallel::SetBucketWay(BucketWay way) {
  if (way == bucket_way_) return absl::OkStatus();
  if (way == BucketWay::kPlain) {
    buckets_->UseLevels(nullptr);
    if (gpus_ != nullptr) gpus_->UsePlain();
  } else {
    ASSIGN_OR_RETURN(const NodeGrid grid, Grid());
    RETURN_IF_ERROR(UseLevels(grid));
  }
  bucket_way_ = way;
  return absl::OkStatus();
}

absl::Status DataParallel::UseLevels(const NodeGrid& grid) {
  const int node_number = rank_ / grid.ranks_per_node, place = rank_ % grid.ranks_per_node;
  // Their communicators of MPI outlast these groups.
  ASSIGN_OR_RETURN(const auto node, Divide(node_number, place));
  ASSIGN_OR_RETURN(const auto peers, Divide(place, node_number));
  node->named_ = peers->named_ = named_;
  if (gpus_ != nullptr) {
    const at::Device device = gpus_->device();
    ASSIGN_OR_RETURN(auto node_gpus, node->JoinNccl(device, /*blocking=*/false));
    ASSIGN_OR_RETURN(auto peer_gpus, peers->JoinNccl(device, /*blocking=*/false));
    gpus_->UseLevels(grid, std::move(node_gpus), std::move(peer_gpus));
  }
  buckets_->UseLevels(std::make_unique<TwoLevelPieces>(
      grid, std::make_unique<MpiPieces>(node->comm_->comm, named_, " inside a node", timeout_),
      std::make_unique<MpiPieces>(peers->comm_->comm, named_, " between nodes", timeout_)));
  return absl::OkStatus();
}

}  // namespace tritonrl
