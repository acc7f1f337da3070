#include "parallel/process_group.h"

#include <cuda_runtime_api.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "parallel/mpi_collectives.h"
#include "parallel/nccl_collectives.h"
#include "parallel/nccl_communicator.h"

// What the environment says of the launcher that started this process.

namespace tritonrl {

struct ProcessGroup::Communicator {
  MPI_Comm comm = MPI_COMM_WORLD;
  bool own_mpi = false;  // MPI was initialised here and is finalised in the destructor
};

ProcessGroup::ProcessGroup(absl::Duration timeout) : timeout_(timeout) {}

std::unique_ptr<ProcessGroup> ProcessGroup::SingleProcess() {
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(absl::ZeroDuration()));
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Join(absl::Duration timeout) {
  std::unique_ptr<ProcessGroup> ranks(new ProcessGroup(timeout));
  if (!LaunchedByMpi()) return ranks;
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (!initialized) {
    int provided = 0;
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (code != MPI_SUCCESS) return MpiError(code, "joining the MPI job");
    if (provided < MPI_THREAD_SERIALIZED) {
      return absl::FailedPreconditionError("this MPI library does not support threads");
    }
  }
  ranks->comm_ = std::make_unique<Communicator>();
  ranks->comm_->own_mpi = !initialized;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks->size_);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks->rank_, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &ranks->local_rank_);
  MPI_Comm_size(node, &ranks->local_size_);
  MPI_Comm_free(&node);
  ranks->buckets_ =
      std::make_unique<MpiShardCollectives>(MPI_COMM_WORLD, ranks->rank_, ranks->size_, timeout);
  return ranks;
}

ProcessGroup::~ProcessGroup() {
  if (comm_ == nullptr) return;
  // A group's communicator lasts as long as MPI: to free it is for all its ranks together, of which
  // one may be ending for an error.
  if (job_ != nullptr || !comm_->own_mpi) return;
  // MPI_Finalize waits for all ranks without a deadline, so make sure they are there first.
  if (lost_ || !Barrier().ok()) Abort(1);
  MPI_Finalize();
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::NewGroup(
    const std::vector<int>& members) {
  std::vector<bool> in(size_, false);
  for (const int member : members) {
    if (member < 0 || member >= size_ || in[member]) {
      return absl::InvalidArgumentError(absl::StrCat("a group cannot have rank ", member, " of ",
                                                     size_, " ranks, or has it twice"));
    }
    in[member] = true;
  }
  std::unique_ptr<ProcessGroup> group;
  if (in[rank_]) {
    group.reset(new ProcessGroup(timeout_));
    const auto place = std::find(members.begin(), members.end(), rank_);
    group->rank_ = static_cast<int>(place - members.begin());
    group->size_ = static_cast<int>(members.size());
    group->local_rank_ = local_rank_;
    group->local_size_ = local_size_;
    group->job_ = this;
  }
  if (size_ == 1) return group;
  // MPI makes a communicator without a deadline, so make sure that all are there first.
  RETURN_IF_ERROR(Barrier());
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = MPI_Comm_split(comm_->comm, group == nullptr ? MPI_UNDEFINED : 0,
                                  group == nullptr ? 0 : group->rank_, &comm);
  if (code != MPI_SUCCESS) return RecordError(MpiError(code, "making a group of ranks"));
  if (group == nullptr) return group;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  group->comm_ = std::make_unique<Communicator>();
  group->comm_->comm = comm;
  group->buckets_ =
      std::make_unique<MpiShardCollectives>(comm, group->rank_, group->size_, timeout_);
  return group;
}

absl::Status ProcessGroup::AllReduce(std::span<double> values) {
  if (size_ == 1 || values.empty()) return absl::OkStatus();
  return RecordError(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                              MPI_DOUBLE, MPI_SUM, comm_->comm, request);
      },
      "a statistics all-reduce", rank_, timeout_));
}

absl::Status ProcessGroup::AllReduceMax(std::span<double> values) {
  if (size_ == 1 || values.empty()) return absl::OkStatus();
  return RecordError(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                              MPI_DOUBLE, MPI_MAX, comm_->comm, request);
      },
      "a maximum all-reduce", rank_, timeout_));
}

absl::StatusOr<std::unique_ptr<NcclCommunicator>> ProcessGroup::InitNcclCommunicator(
    at::Device device, bool blocking) {
  // A GPU's name on all machines; none if it cannot be used.
  char host[256] = "", bus[64] = "";
  gethostname(host, sizeof(host) - 1);
  const bool usable = cudaDeviceGetPCIBusId(bus, sizeof(bus), device.index()) == cudaSuccess;
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   AllGather(usable ? absl::StrCat(host, " ", bus) : ""));
  for (int a = 0; a < size_; ++a) {
    if (all[a].empty()) {
      return absl::UnavailableError(absl::StrCat("rank ", a, " cannot use its GPU"));
    }
    for (int b = a + 1; b < size_; ++b) {
      if (all[a] != all[b]) continue;
      return absl::FailedPreconditionError(absl::StrCat("ranks ", a, " and ", b,
                                                        " have the same GPU (", all[a],
                                                        "); start one rank for each GPU"));
    }
  }
  return NcclCommunicator::Join(
      {.rank = rank_, .size = size_, .device = device, .timeout = timeout_, .blocking = blocking},
      [this](std::string* text) { return Broadcast(text); });
}

absl::Status ProcessGroup::InitNcclCollectives(at::Device device) {
  if (size_ == 1 || !device.is_cuda()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<NcclCommunicator> group,
                   InitNcclCommunicator(device, /*blocking=*/false));
  nccl_ = std::make_unique<NcclShardCollectives>(std::move(group));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StreamCollectives>> ProcessGroup::MakeStreamCollectives(
    at::Device device) {
  if (!device.is_cuda()) {
    return std::make_unique<MpiStreamCollectives>(comm_->comm, rank_, size_, timeout_);
  }
  // Many small sums a step, in graphs or launched one by one.
  ASSIGN_OR_RETURN(std::unique_ptr<NcclCommunicator> group,
                   InitNcclCommunicator(device, /*blocking=*/true));
  return std::make_unique<NcclStreamCollectives>(std::move(group));
}

std::unique_ptr<PointToPoint> ProcessGroup::MakePointToPoint() {
  return std::make_unique<MpiPointToPoint>(comm_->comm, rank_, size_);
}

ShardCollectives* ProcessGroup::CollectivesFor(const at::Tensor& full) const {
  if (nccl_ != nullptr && full.is_cuda()) return nccl_.get();
  return buckets_.get();
}

absl::Status ProcessGroup::RecordError(absl::Status status) {
  lost_ |= !status.ok();
  if (job_ != nullptr) job_->lost_ |= lost_;
  return status;
}

absl::Status ProcessGroup::ReduceScatterBucket(const ShardPlan& plan, int64_t bucket,
                                               const at::Tensor& full, const at::Tensor& local,
                                               bool add) {
  if (full.scalar_type() != at::kFloat || !full.is_contiguous()) {
    return absl::InternalError("sums are of contiguous fp32 tensors");
  }
  return RecordError(CollectivesFor(full)->ReduceScatter(plan, bucket, full, local, add));
}

absl::Status ProcessGroup::AwaitReduceScatter(const at::Tensor& full, int64_t bucket) {
  return RecordError(CollectivesFor(full)->AwaitReduceScatter(bucket));
}

absl::Status ProcessGroup::AllGatherBucket(const ShardPlan& plan, int64_t bucket,
                                           const at::Tensor& full) {
  return RecordError(CollectivesFor(full)->AllGather(plan, bucket, full));
}

absl::Status ProcessGroup::BroadcastBucket(const at::Tensor& part, int root) {
  if (!part.is_contiguous() || part.nbytes() > std::numeric_limits<int>::max()) {
    return absl::InternalError("broadcasts are of contiguous tensors below 2 GiB");
  }
  return RecordError(CollectivesFor(part)->Broadcast(part, root));
}

absl::Status ProcessGroup::WaitForCollectives(const at::Tensor& full, const char* what) {
  return RecordError(CollectivesFor(full)->Finish(what));
}

absl::Status ProcessGroup::AllGatherShards(const ShardPlan& plan, const at::Tensor& local,
                                           const at::Tensor& full) {
  for (int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
    const FlatRange shard = plan.Shard(bucket, rank_);
    full.narrow(0, shard.begin, shard.size())
        .copy_(local.narrow(0, plan.LocalOffset(bucket, rank_), shard.size()));
    if (size_ > 1) RETURN_IF_ERROR(AllGatherBucket(plan, bucket, full));
  }
  return size_ > 1 ? WaitForCollectives(full, "the shard all-gather") : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ProcessGroup::AllGather(const std::string& text) {
  if (size_ == 1) return std::vector<std::string>{text};
  // Sizes first (a sum of one-hot vectors), then all bytes in one go.
  std::vector<double> sizes(size_, 0.0);
  sizes[rank_] = static_cast<double>(text.size());
  RETURN_IF_ERROR(AllReduce(std::span<double>(sizes)));
  std::vector<int> counts(size_), offsets(size_);
  double total = 0;
  for (int r = 0; r < size_; ++r) {
    counts[r] = static_cast<int>(sizes[r]);
    offsets[r] = static_cast<int>(total);
    total += sizes[r];
  }
  if (total > std::numeric_limits<int>::max()) {
    return absl::ResourceExhaustedError("AllGather of more than 2 GiB");
  }
  std::string all(static_cast<size_t>(total), '\0');
  RETURN_IF_ERROR(RecordError(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallgatherv(text.data(), counts[rank_], MPI_BYTE, all.data(), counts.data(),
                               offsets.data(), MPI_BYTE, comm_->comm, request);
      },
      "an exchange of records", rank_, timeout_, static_cast<int64_t>(total))));
  std::vector<std::string> texts;
  for (int r = 0; r < size_; ++r) texts.push_back(all.substr(offsets[r], counts[r]));
  return texts;
}

absl::Status ProcessGroup::Broadcast(std::string* text) {
  if (size_ == 1) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<std::string> texts, AllGather(is_root() ? *text : std::string()));
  *text = std::move(texts[0]);
  return absl::OkStatus();
}

absl::Status ProcessGroup::Barrier(std::optional<absl::Duration> timeout) {
  if (size_ == 1) return absl::OkStatus();
  return RecordError(
      AwaitMpi([this](MPI_Request* request) { return MPI_Ibarrier(comm_->comm, request); },
               "a barrier", rank_, timeout.value_or(timeout_)));
}

absl::StatusOr<bool> ProcessGroup::Any(bool flag) {
  double value = flag ? 1 : 0;
  RETURN_IF_ERROR(AllReduceMax(std::span<double>(&value, 1)));
  return value > 0;
}

absl::Status ProcessGroup::AllReduceStatus(const absl::Status& status) {
  if (size_ == 1) return status;
  const std::string mine =
      status.ok() ? "" : absl::StrCat(static_cast<int>(status.code()), " ", Message(status));
  ASSIGN_OR_RETURN(const std::vector<std::string> all, AllGather(mine));
  for (int r = 0; r < size_; ++r) {
    if (all[r].empty()) continue;
    const size_t space = all[r].find(' ');
    int code = static_cast<int>(absl::StatusCode::kUnknown);
    (void)absl::SimpleAtoi(all[r].substr(0, space), &code);
    return absl::Status(static_cast<absl::StatusCode>(code),
                        absl::StrCat("rank ", r, ": ", all[r].substr(space + 1)));
  }
  return absl::OkStatus();
}

void ProcessGroup::Abort(int exit_code) {
  if (job_ != nullptr) job_->Abort(exit_code);
  if (size_ > 1) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

int ExitCodeFor(const absl::Status& status, ProcessGroup* ranks) {
  if (status.ok()) return kExitDone;
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", Message(status).c_str());
  if (ranks != nullptr && ranks->size() > 1) {
    std::fflush(stderr);
    ranks->Abort(kExitFailed);
  }
  return kExitFailed;
}

namespace {

// The first of these variables of the environment that is a number.
int FirstEnvNumber(const std::vector<const char*>& names, int otherwise) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    int number = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &number)) return number;
  }
  return otherwise;
}

}  // namespace

bool ProcessGroup::LaunchedByMpi() {
  // OpenMPI's launcher; PMIx and PMI through srun. A plain Slurm batch step sets none of them.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

int ProcessGroup::LaunchedRank() {
  return FirstEnvNumber({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}, 0);
}

int ProcessGroup::LaunchedSize() {
  // Slurm names its number of tasks in steps without ranks, too.
  return LaunchedByMpi() ? FirstEnvNumber({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, 1)
                         : 1;
}

}  // namespace tritonrl
