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
#include "base/log.h"
#include "base/status.h"
#include "parallel/mpi_collectives.h"
#include "parallel/nccl_collectives.h"
#include "parallel/nccl_communicator.h"

namespace tritonrl {

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
  ranks->own_mpi_ = !initialized;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks->size_);
  if (ranks->size_ > 1) SetLogRank(ranks->rank_);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks->rank_, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &ranks->local_rank_);
  MPI_Comm_size(node, &ranks->local_size_);
  MPI_Comm_free(&node);
  ranks->collectives_ =
      std::make_unique<MpiCollectives>(MPI_COMM_WORLD, ranks->rank_, ranks->size_, timeout);
  return ranks;
}

ProcessGroup::~ProcessGroup() {
  if (collectives_ == nullptr) return;
  // The communicator of a group is not freed: all its ranks would have to free it together, and one
  // of them may be ending because of an error.
  if (job_ != nullptr) job_->group_lost_ |= lost();
  if (!own_mpi_) return;
  // MPI_Finalize waits for all ranks without a deadline; the barrier before it has one.
  if (lost() || !Barrier().ok()) Abort(1);
  MPI_Finalize();
}

bool ProcessGroup::lost() const {
  return group_lost_ || (collectives_ != nullptr && collectives_->lost());
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
    const auto position = std::find(members.begin(), members.end(), rank_);
    group->rank_ = static_cast<int>(position - members.begin());
    group->size_ = static_cast<int>(members.size());
    group->local_rank_ = local_rank_;
    group->local_size_ = local_size_;
    group->job_ = this;
  }
  if (size_ == 1) return group;
  // MPI_Comm_split waits for all ranks without a deadline; the barrier before it has one.
  RETURN_IF_ERROR(Barrier());
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = MPI_Comm_split(collectives_->comm(), group == nullptr ? MPI_UNDEFINED : 0,
                                  group == nullptr ? 0 : group->rank_, &comm);
  if (code != MPI_SUCCESS) return MpiError(code, "making a group of ranks");
  if (group == nullptr) return group;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  group->collectives_ =
      std::make_unique<MpiCollectives>(comm, group->rank_, group->size_, timeout_);
  return group;
}

namespace {

// Reduces `values` in place with `op`. MPI works on a copy, because it may still write to its
// buffer after the deadline.
absl::Status AllReduceValues(std::span<double> values, MPI_Op op, const char* what,
                             MpiCollectives* collectives) {
  if (collectives == nullptr || values.empty()) return absl::OkStatus();
  const auto copy = std::make_shared<std::vector<double>>(values.begin(), values.end());
  RETURN_IF_ERROR(collectives->Run({.what = what,
                                    .start =
                                        [&](MPI_Request* request) {
                                          return MPI_Iallreduce(MPI_IN_PLACE, copy->data(),
                                                                static_cast<int>(copy->size()),
                                                                MPI_DOUBLE, op, collectives->comm(),
                                                                request);
                                        },
                                    .buffers = copy}));
  std::copy(copy->begin(), copy->end(), values.begin());
  return absl::OkStatus();
}

}  // namespace

absl::Status ProcessGroup::AllReduce(std::span<double> values) {
  return AllReduceValues(values, MPI_SUM, "a statistics all-reduce", collectives_.get());
}

absl::Status ProcessGroup::AllReduceMax(std::span<double> values) {
  return AllReduceValues(values, MPI_MAX, "a maximum all-reduce", collectives_.get());
}

absl::StatusOr<std::unique_ptr<NcclCommunicator>> ProcessGroup::InitNcclCommunicator(
    at::Device device, bool blocking) {
  // A name of this rank's GPU that is unique among all machines; empty if the GPU is not usable.
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
  ASSIGN_OR_RETURN(std::unique_ptr<NcclCommunicator> communicator,
                   InitNcclCommunicator(device, /*blocking=*/false));
  collectives_ = std::make_unique<NcclCollectives>(
      std::move(communicator), NcclCollectives::Ordering::kOwnStream, collectives_->comm());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Collectives>> ProcessGroup::NewStreamCollectives(at::Device device) {
  if (!device.is_cuda()) {
    return std::make_unique<MpiCollectives>(collectives_->comm(), rank_, size_, timeout_);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<NcclCommunicator> communicator,
                   InitNcclCommunicator(device, /*blocking=*/true));
  return std::make_unique<NcclCollectives>(
      std::move(communicator), NcclCollectives::Ordering::kCurrentStream, collectives_->comm());
}

Collectives* ProcessGroup::collectives() const { return collectives_.get(); }

absl::StatusOr<std::vector<std::string>> ProcessGroup::AllGather(const std::string& text) {
  if (size_ == 1) return std::vector<std::string>{text};
  // The first exchange is the sizes (an all-reduce of vectors with one nonzero element each), the
  // second the texts.
  std::vector<double> sizes(size_, 0.0);
  sizes[rank_] = static_cast<double>(text.size());
  RETURN_IF_ERROR(AllReduce(std::span<double>(sizes)));
  // MPI keeps using these after a missed deadline, so the operation owns them.
  struct Buffers {
    std::string mine, all;
    std::vector<int> counts, offsets;
  };
  const auto buffers = std::make_shared<Buffers>();
  buffers->mine = text;
  double total = 0;
  for (const double size : sizes) {
    if (total + size > std::numeric_limits<int>::max()) {
      return absl::ResourceExhaustedError("AllGather of more than 2 GiB");
    }
    buffers->counts.push_back(static_cast<int>(size));
    buffers->offsets.push_back(static_cast<int>(total));
    total += size;
  }
  buffers->all.resize(static_cast<size_t>(total));
  RETURN_IF_ERROR(collectives_->Run({.what = "an exchange of texts",
                                     .start =
                                         [&](MPI_Request* request) {
                                           return MPI_Iallgatherv(
                                               buffers->mine.data(), buffers->counts[rank_],
                                               MPI_BYTE, buffers->all.data(),
                                               buffers->counts.data(), buffers->offsets.data(),
                                               MPI_BYTE, collectives_->comm(), request);
                                         },
                                     .buffers = buffers,
                                     .bytes = static_cast<int64_t>(total)}));
  std::vector<std::string> texts;
  for (int r = 0; r < size_; ++r) {
    texts.push_back(buffers->all.substr(buffers->offsets[r], buffers->counts[r]));
  }
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
  return collectives_->Run(
      {.what = "a barrier",
       .start =
           [this](MPI_Request* request) { return MPI_Ibarrier(collectives_->comm(), request); }},
      timeout);
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
  Log(LogLevel::kError, absl::StrCat("error: ", Message(status)));
  if (ranks != nullptr && ranks->size() > 1) ranks->Abort(kExitFailed);
  return kExitFailed;
}

namespace {

// Returns the first of these environment variables whose value is a number, else `otherwise`.
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
  // OpenMPI's launcher sets the first, srun with PMIx or PMI the others. A plain Slurm batch step
  // sets none of them.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

int ProcessGroup::LaunchedRank() {
  return FirstEnvNumber({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}, 0);
}

int ProcessGroup::LaunchedSize() {
  // Slurm sets SLURM_NTASKS in steps without ranks too.
  return LaunchedByMpi() ? FirstEnvNumber({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, 1)
                         : 1;
}

}  // namespace tritonrl
