#include "parallel/data_parallel.h"

#include <cuda_runtime_api.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "parallel/gpu_collectives.h"
#include "parallel/mpi_buckets.h"
#include "parallel/mpi_wait.h"

namespace tritonrl {

bool DataParallel::LaunchedByMpi() {
  // OpenMPI's launcher; PMIx and PMI through srun. A plain Slurm batch step sets none of them.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Join(absl::Duration timeout) {
  if (!LaunchedByMpi()) {
    return std::unique_ptr<DataParallel>(new DataParallel(false, timeout));
  }
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (!initialized) {
    int provided = 0;
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    if (code != MPI_SUCCESS) return MpiError(code, "joining the MPI job");
    if (provided < MPI_THREAD_FUNNELED) {
      return absl::FailedPreconditionError("this MPI library does not support threads");
    }
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::unique_ptr<DataParallel> ranks(new DataParallel(!initialized, timeout));
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks->size_);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks->rank_, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &ranks->local_rank_);
  MPI_Comm_size(node, &ranks->local_size_);
  MPI_Comm_free(&node);
  ranks->buckets_ = std::make_unique<MpiBuckets>(ranks->rank_, ranks->size_, timeout);
  return ranks;
}

DataParallel::~DataParallel() {
  if (!own_mpi_) return;
  // MPI_Finalize waits for all ranks without a deadline, so make sure they are there first.
  if (lost_ || !Barrier().ok()) Abort(1);
  MPI_Finalize();
}

absl::Status DataParallel::Sum(std::span<double> values) {
  if (size_ == 1 || values.empty()) return absl::OkStatus();
  const absl::Status status = AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                              MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
      },
      "a sum of statistics", rank_, timeout_);
  lost_ |= !status.ok();
  return status;
}

absl::Status DataParallel::Max(std::span<double> values) {
  if (size_ == 1 || values.empty()) return absl::OkStatus();
  const absl::Status status = AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                              MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, request);
      },
      "a maximum of statistics", rank_, timeout_);
  lost_ |= !status.ok();
  return status;
}

absl::Status DataParallel::JoinGpus(at::Device device) {
  if (size_ == 1 || !device.is_cuda()) return absl::OkStatus();
  // A GPU's name on all machines.
  char host[256] = "", bus[64] = "";
  gethostname(host, sizeof(host) - 1);
  if (cudaDeviceGetPCIBusId(bus, sizeof(bus), device.index()) != cudaSuccess) {
    return absl::UnavailableError(absl::StrCat("rank ", rank_, " cannot use ", device.str()));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> all, AllGather(absl::StrCat(host, " ", bus)));
  for (int a = 0; a < size_; ++a) {
    for (int b = a + 1; b < size_; ++b) {
      if (all[a] != all[b]) continue;
      return absl::FailedPreconditionError(absl::StrCat("ranks ", a, " and ", b,
                                                        " have the same GPU (", all[a],
                                                        "); start one rank for each GPU"));
    }
  }
  ASSIGN_OR_RETURN(gpus_, GpuCollectives::Join(
                              {.rank = rank_, .size = size_, .device = device, .timeout = timeout_},
                              [this](std::string* text) { return Broadcast(text); }));
  return absl::OkStatus();
}

BucketExchange* DataParallel::Exchange(const at::Tensor& full) const {
  return gpus_ != nullptr && full.is_cuda() ? gpus_.get() : buckets_.get();
}

absl::Status DataParallel::Noted(absl::Status status) {
  lost_ |= !status.ok();
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
  const absl::Status status = AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallgatherv(text.data(), counts[rank_], MPI_BYTE, all.data(), counts.data(),
                               offsets.data(), MPI_BYTE, MPI_COMM_WORLD, request);
      },
      "an exchange of records", rank_, timeout_);
  lost_ |= !status.ok();
  RETURN_IF_ERROR(status);
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

absl::Status DataParallel::Barrier() {
  if (size_ == 1) return absl::OkStatus();
  const absl::Status status =
      AwaitMpi([](MPI_Request* request) { return MPI_Ibarrier(MPI_COMM_WORLD, request); },
               "a barrier", rank_, timeout_);
  lost_ |= !status.ok();
  return status;
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
  if (size_ > 1) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace tritonrl
