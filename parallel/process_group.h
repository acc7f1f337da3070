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

// The ranks of an MPI job that train one policy together, or generate for it, and how programs of
// several ranks end.

namespace tritonrl {

class MpiCollectives;
class NcclCommunicator;

// One thread at a time makes calls. All ranks make the same calls in the same order. Every
// operation has a deadline: a rank that died or hangs ends the job with a message. With one rank
// every operation returns at once and MPI is not touched.
class ProcessGroup {
 public:
  // Joins the job if an MPI launcher (mpirun, srun --mpi=pmix) started this process, else makes a
  // group of one. `timeout` is the deadline of each collective operation.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Join(absl::Duration timeout);
  // A group of this process alone, whatever started it.
  static std::unique_ptr<ProcessGroup> SingleProcess();
  // Waits for the other ranks (up to the deadline) and leaves the job. A group made by NewGroup
  // waits for nobody.
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

  // A group of some of these ranks with operations of its own. All ranks call it together with the
  // same `members`. The n-th member is the new group's rank n; it gets the group, which must end
  // before this object, and other ranks get null. local_rank() stays that of the job.
  // InvalidArgument: a member that is no rank, or is there twice.
  absl::StatusOr<std::unique_ptr<ProcessGroup>> NewGroup(const std::vector<int>& members);

  // Element-wise over all ranks, in place; the same bits on every rank.
  absl::Status AllReduce(std::span<double> values);
  absl::Status AllReduceMax(std::span<double> values);

  // With several ranks: the group's collectives and messages, through CPU memory (MPI) or, after
  // InitNcclCollectives, on a stream of their own for tensors of that GPU.
  Collectives* collectives() const;
  // Makes collectives() use NCCL for tensors on `device`. Does nothing for a CPU or a single rank.
  // FailedPrecondition names two ranks with the same GPU.
  absl::Status InitNcclCollectives(at::Device device);
  // With several ranks, for all of them together: collectives for use in the middle of a
  // computation, as tensor parallelism does. On a GPU they are work of the current stream and may
  // be captured in CUDA graphs (errors: those of InitNcclCollectives). They end before this object.
  absl::StatusOr<std::unique_ptr<Collectives>> NewStreamCollectives(at::Device device);

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
  explicit ProcessGroup(absl::Duration timeout);
  // Of the job, or of the group that the job has made.
  bool lost() const;

  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  absl::Duration timeout_;
  ProcessGroup* job_ = nullptr;                  // whose group this is; null: the whole job
  bool group_lost_ = false;                      // a group of this job lost ranks
  bool own_mpi_ = false;                         // this object initialized MPI, and finalizes it
  std::unique_ptr<MpiCollectives> collectives_;  // null with one process
};

// Exit codes of the training programs.
enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,    // an error, printed in one sentence on stderr
  kExitBadUsage = 2,  // a flag or the configuration
  kExitRequeue = 75,  // stopped by a signal after a checkpoint: the same command resumes
};

// Prints "error: message" for a bad status and returns the exit code. With several ranks a failing
// one ends the job, since the others can't know.
int ExitCodeFor(const absl::Status& status, ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_PROCESS_GROUP_H_
