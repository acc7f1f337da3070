#include "parallel/data_parallel.h"

#include <cuda_runtime_api.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "parallel/gpu_collectives.h"
#include "parallel/gpu_communicator.h"
#include "parallel/gpu_rank_sum.h"
#include "parallel/job_communicator.h"
#include "parallel/mpi_buckets.h"
#include "parallel/mpi_rank_mail.h"
#include "parallel/mpi_rank_sum.h"
#include "parallel/mpi_wait.h"

namespace tritonrl {

DataParallel::DataParallel(absl::Duration timeout) : timeout_(timeout) {}

std::unique_ptr<DataParallel> DataParallel::Alone() {
  return std::unique_ptr<DataParallel>(new DataParallel(absl::ZeroDuration()));
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Join(absl::Duration timeout,
                                                                 int ranks_per_node) {
  std::unique_ptr<DataParallel> ranks(new DataParallel(timeout));
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
  ranks->named_ = ranks->rank_;
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks->rank_, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &ranks->local_rank_);
  MPI_Comm_size(node, &ranks->local_size_);
  int first_here = ranks->rank_;
  MPI_Bcast(&first_here, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  ranks->buckets_ =
      std::make_unique<MpiBuckets>(MPI_COMM_WORLD, ranks->rank_, ranks->size_, timeout);
  std::vector<double> node_of_rank(ranks->size_, 0);
  ranks->node_ = first_here;
  if (ranks_per_node > 0) {
    ranks->node_ = ranks->rank_ / ranks_per_node;
    ranks->local_rank_ = ranks->rank_ % ranks_per_node;
  }
  node_of_rank[ranks->rank_] = ranks->node_;
  RETURN_IF_ERROR(ranks->Sum(std::span<double>(node_of_rank)));
  ranks->node_of_rank_.assign(node_of_rank.begin(), node_of_rank.end());
  return ranks;
}

DataParallel::~DataParallel() {
  if (comm_ == nullptr) return;
  // A group's communicator lasts as long as MPI: to free it is for all its ranks together, of which
  // one may be ending for an error.
  if (job_ != nullptr || !comm_->own_mpi) return;
  // MPI_Finalize waits for all ranks without a deadline, so make sure they are there first.
  if (lost_ || !Barrier().ok()) Abort(1);
  MPI_Finalize();
}

absl::Status DataParallel::Sum(std::span<double> values) {
  if (size_ == 1 || values.empty()) return absl::OkStatus();
  return Noted(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                              MPI_DOUBLE, MPI_SUM, comm_->comm, request);
      },
      "a sum of statistics", rank_, timeout_));
}

absl::Status DataParallel::Max(std::span<double> values) {
  if (size_ == 1 || values.empty()) return absl::OkStatus();
  return Noted(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                              MPI_DOUBLE, MPI_MAX, comm_->comm, request);
      },
      "a maximum of statistics", rank_, timeout_));
}

absl::StatusOr<std::unique_ptr<GpuCommunicator>> DataParallel::JoinNccl(at::Device device,
                                                                        bool blocking) {
  // A GPU's name on all machines; none if it cannot be used.
  char host[256] = "", bus[64] = "";
  gethostname(host, sizeof(host) - 1);
  const bool usable = cudaDeviceGetPCIBusId(bus, sizeof(bus), device.index()) == cudaSuccess;
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   AllGather(usable ? absl::StrCat(host, ", node ", node_, ", ", bus) : ""));
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
  return GpuCommunicator::Join({.rank = rank_,
                                .size = size_,
                                .named = named_,
                                .device = device,
                                .timeout = timeout_,
                                .blocking = blocking},
                               [this](std::string* text) { return Broadcast(text); });
}

absl::Status DataParallel::JoinGpus(at::Device device) {
  if (size_ == 1 || !device.is_cuda()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<GpuCommunicator> group, JoinNccl(device, /*blocking=*/false));
  gpus_ = std::make_unique<GpuCollectives>(std::move(group));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RankSum>> DataParallel::MakeRankSum(at::Device device) {
  if (!device.is_cuda()) {
    return std::make_unique<MpiRankSum>(comm_->comm, rank_, size_, timeout_);
  }
  // Many small sums a step, in graphs or launched one by one.
  ASSIGN_OR_RETURN(std::unique_ptr<GpuCommunicator> group, JoinNccl(device, /*blocking=*/true));
  return std::make_unique<GpuRankSum>(std::move(group));
}

std::unique_ptr<RankMail> DataParallel::MakeMail() {
  return std::make_unique<MpiRankMail>(comm_->comm, rank_, size_);
}

BucketExchange* DataParallel::Exchange(const at::Tensor& full) const {
  if (gpus_ != nullptr && full.is_cuda()) return gpus_.get();
  return buckets_.get();
}

absl::Status DataParallel::Noted(absl::Status status) {
  lost_ |= !status.ok();
  if (job_ != nullptr) job_->lost_ |= lost_;
  return status;
}

absl::Status DataParallel::ReduceBucket(const ShardPlan& plan, int64_t bucket,
                                        const at::Tensor& full, const at::Tensor& local, bool add) {
  if (full.scalar_type() != at::kFloat || !full.is_contiguous()) {
    return absl::InternalError("sums are of contiguous fp32 tensors");
  }
  return Noted(Exchange(full)->Reduce(plan, bucket, full, local, add));
}

absl::Status DataParallel::AwaitReduce(const at::Tensor& full, int64_t bucket) {
  return Noted(Exchange(full)->AwaitReduce(bucket));
}

absl::Status DataParallel::GatherBucket(const ShardPlan& plan, int64_t bucket,
                                        const at::Tensor& full) {
  return Noted(Exchange(full)->Gather(plan, bucket, full));
}

absl::Status DataParallel::BroadcastBucket(const at::Tensor& part, int root) {
  if (!part.is_contiguous() || part.nbytes() > std::numeric_limits<int>::max()) {
    return absl::InternalError("broadcasts are of contiguous tensors below 2 GiB");
  }
  return Noted(Exchange(part)->Broadcast(part, root));
}

absl::Status DataParallel::FinishBuckets(const at::Tensor& full, const char* what) {
  return Noted(Exchange(full)->Finish(what));
}

absl::Status DataParallel::GatherShards(const ShardPlan& plan, const at::Tensor& local,
                                        const at::Tensor& full) {
  for (int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
    const FlatRange piece = plan.Piece(bucket, rank_);
    full.narrow(0, piece.begin, piece.size())
        .copy_(local.narrow(0, plan.LocalOffset(bucket, rank_), piece.size()));
    if (size_ > 1) RETURN_IF_ERROR(GatherBucket(plan, bucket, full));
  }
  return size_ > 1 ? FinishBuckets(full, "the exchange of shares") : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> DataParallel::AllGather(const std::string& text) {
  if (size_ == 1) return std::vector<std::string>{text};
  // Sizes first (a sum of one-hot vectors), then all bytes in one go.
  std::vector<double> sizes(size_, 0.0);
  sizes[rank_] = static_cast<double>(text.size());
  RETURN_IF_ERROR(Sum(std::span<double>(sizes)));
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
  RETURN_IF_ERROR(Noted(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallgatherv(text.data(), counts[rank_], MPI_BYTE, all.data(), counts.data(),
                               offsets.data(), MPI_BYTE, comm_->comm, request);
      },
      "an exchange of records", rank_, timeout_, static_cast<int64_t>(total))));
  std::vector<std::string> texts;
  for (int r = 0; r < size_; ++r) texts.push_back(all.substr(offsets[r], counts[r]));
  return texts;
}

absl::Status DataParallel::Broadcast(std::string* text) {
  if (size_ == 1) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<std::string> texts, AllGather(is_root() ? *text : std::string()));
  *text = std::move(texts[0]);
  return absl::OkStatus();
}

absl::Status DataParallel::Barrier(std::optional<absl::Duration> timeout) {
  if (size_ == 1) return absl::OkStatus();
  return Noted(AwaitMpi([this](MPI_Request* request) { return MPI_Ibarrier(comm_->comm, request); },
                        "a barrier", rank_, timeout.value_or(timeout_)));
}

absl::StatusOr<bool> DataParallel::Any(bool flag) {
  double value = flag ? 1 : 0;
  RETURN_IF_ERROR(Max(std::span<double>(&value, 1)));
  return value > 0;
}

absl::Status DataParallel::Agree(const absl::Status& status) {
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

void DataParallel::Abort(int exit_code) {
  if (job_ != nullptr) job_->Abort(exit_code);
  if (size_ > 1) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace tritonrl
