#ifndef TRITONRL_PARALLEL_PROCESS_GROUP_H_
#define TRITONRL_PARALLEL_PROCESS_GROUP_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/collectives.h"
#include "parallel/shard_plan.h"

// The ranks of an MPI job that train one policy together, or generate for it. Every collective
// operation has a deadline: a rank that died or hangs ends the job with a message, never in
// silence.
//
// How programs of several ranks end.

namespace tritonrl {

class NcclCommunicator;

// One thread at a time makes calls. All ranks must make the same calls in the same order. With one
// rank every operation returns at once and MPI is not touched.
class ProcessGroup {
 public:
  // Joins the job when an MPI launcher (mpirun, srun --mpi=pmix) started this process, else makes a
  // world of one. `timeout` is the deadline of each collective operation.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Join(absl::Duration timeout);
  // A world of this process alone, whoever started it.
  static std::unique_ptr<ProcessGroup> SingleProcess();
  // Waits for the other ranks (up to the deadline) and leaves the job; of a group nobody waits.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Rank among those on this machine: which GPU to take.
  int local_rank() const { return local_rank_; }
  // Ranks on this machine: they share its cores.
  int local_size() const { return local_size_; }
  bool is_root() const { return rank_ == 0; }

  // A group of ranks with operations of its own, beside those of this job: called by all ranks
  // together, with the same numbers, each once. The n-th of them is the group's rank n; it gets the
  // group, which must end before this object, and the others get null. local_rank() stays that of
  // the job. InvalidArgument: a number that is no rank, or is there twice.
  absl::StatusOr<std::unique_ptr<ProcessGroup>> NewGroup(const std::vector<int>& members);

  // Element-wise over all ranks, in place; the same bits on every rank.
  absl::Status AllReduce(std::span<double> values);
  absl::Status AllReduceMax(std::span<double> values);
  // From now on tensors go from GPU to GPU (NCCL) where they lie on `device`; without it they go
  // through CPU memory, bucket by bucket. Nothing to do for a CPU or a single rank. Error: two
  // ranks with the same GPU, named.
  absl::Status InitNcclCollectives(at::Device device);

  // With several ranks: buckets of flat buffers, see ShardCollectives.
  absl::Status ReduceScatterBucket(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                                   const at::Tensor& local, bool add = false);
  absl::Status AwaitReduceScatter(const at::Tensor& full, int64_t bucket);
  absl::Status AllGatherBucket(const ShardPlan& plan, int64_t bucket, const at::Tensor& full);
  absl::Status BroadcastBucket(const at::Tensor& part, int root);
  absl::Status WaitForCollectives(const at::Tensor& full, const char* what);
  // What all ranks keep, into `full` on every rank; both of one type, of any.
  absl::Status AllGatherShards(const ShardPlan& plan, const at::Tensor& local,
                               const at::Tensor& full);

  // Every rank's text, by rank, on every rank.
  absl::StatusOr<std::vector<std::string>> AllGather(const std::string& text);
  // Rank 0's text for all.
  absl::Status Broadcast(std::string* text);
  // `timeout`: where others may come later than the deadline of a collective operation.
  absl::Status Barrier(std::optional<absl::Duration> timeout = std::nullopt);

  // True on every rank if `flag` is true on any.
  absl::StatusOr<bool> Any(bool flag);
  // The same on every rank: OK if every rank's status is, else the error of the lowest rank that
  // has one, with its number.
  absl::Status AllReduceStatus(const absl::Status& status);

  // What tensor parallelism takes, with several ranks and for all of them together. Sums are
  // between the ranks' GPUs if `device` is one (the errors are those of InitNcclCollectives), else
  // through CPU memory. Both end before this object.
  absl::StatusOr<std::unique_ptr<StreamCollectives>> MakeStreamCollectives(at::Device device);
  std::unique_ptr<PointToPoint> MakePointToPoint();

  // Ends the whole job with an exit code; for errors of one rank that the others can't know of.
  // With one rank it only exits.
  [[noreturn]] void Abort(int exit_code);

  // Whether the environment says that an MPI launcher started this process.
  static bool LaunchedByMpi();
  // This process's rank and the number of ranks as the environment says; 0 and 1 without a
  // launcher.
  static int LaunchedRank();
  static int LaunchedSize();

 private:
  // A communicator with a GPU of its own for each rank.
  absl::StatusOr<std::unique_ptr<NcclCommunicator>> InitNcclCommunicator(at::Device device,
                                                                         bool blocking);
  ShardCollectives* CollectivesFor(const at::Tensor& full) const;
  // Remembers that a collective failed.
  absl::Status RecordError(absl::Status status);

  struct Communicator;
  explicit ProcessGroup(absl::Duration timeout);

  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  bool lost_ = false;  // a collective failed: the others may never answer again
  absl::Duration timeout_;
  ProcessGroup* job_ = nullptr;                // whose group this is; null: the whole job
  std::unique_ptr<Communicator> comm_;         // null with one process
  std::unique_ptr<ShardCollectives> buckets_;  // through CPU memory; null with one process
  std::unique_ptr<ShardCollectives> nccl_;     // from GPU to GPU, once they have joined
};

// Exit codes of the training programs.
enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,    // an error, said in one sentence on stderr
  kExitBadUsage = 2,  // a flag or the configuration
  kExitRequeue = 75,  // stopped by a signal with a checkpoint written: the same command goes on
};

// Prints "error: message" for a bad status and returns the exit code. With several ranks a failing
// one ends the job, since the others can't know.
int ExitCodeFor(const absl::Status& status, ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_PROCESS_GROUP_H_
