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

// The ranks of an MPI job that train one policy together or generate for it, and the exit codes of
// programs with several ranks.

namespace tritonrl {

class MpiCollectives;
class NcclCommunicator;

// The ranks of a job, or a group of some of them. Only one thread at a time may make calls. All
// ranks make the same calls in the same order. Every operation has a deadline: if a rank died or
// hangs, the job ends with a message. With one rank every operation returns at once without MPI.
class ProcessGroup {
 public:
  // Joins the job if an MPI launcher (mpirun, srun --mpi=pmix) started this process; otherwise
  // returns a group of one rank. `timeout` is the deadline of each collective operation.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Join(absl::Duration timeout);
  // Returns a group of this process alone, even if an MPI launcher started it.
  static std::unique_ptr<ProcessGroup> SingleProcess();
  // Waits for the other ranks (up to the deadline) and leaves the job. The destructor of a group
  // from NewGroup does not wait.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // This rank's number among the ranks on its machine, which selects its GPU.
  int local_rank() const { return local_rank_; }
  // Number of ranks on this machine, which share its cores.
  int local_size() const { return local_size_; }
  bool is_root() const { return rank_ == 0; }

  // Creates a group of some of these ranks with separate operations. All ranks make the call
  // together with the same `members`. The n-th member becomes rank n of the new group. Members get
  // the group, which must be destroyed before this object; other ranks get null. local_rank() is
  // still that of the job. InvalidArgument if a member is not a rank or occurs twice.
  absl::StatusOr<std::unique_ptr<ProcessGroup>> NewGroup(const std::vector<int>& members);

  // Replace `values` by their element-wise sum or maximum over all ranks, with the same bits on
  // every rank.
  absl::Status AllReduce(std::span<double> values);
  absl::Status AllReduceMax(std::span<double> values);

  // Returns the group's collectives and messages; null with one process. They use MPI through CPU
  // memory or, after InitNcclCollectives, NCCL on a separate stream for tensors on that GPU.
  Collectives* collectives() const;
  // Makes collectives() use NCCL for tensors on `device`. Does nothing for a CPU or a single rank.
  // FailedPrecondition if two ranks have the same GPU; the message names them.
  absl::Status InitNcclCollectives(at::Device device);
  // Creates collectives for use inside a computation, as in tensor parallelism. Needs several
  // ranks, which all make the call together. On a GPU the collectives run on the current stream and
  // may be captured in CUDA graphs; errors are those of InitNcclCollectives. The result must be
  // destroyed before this object.
  absl::StatusOr<std::unique_ptr<Collectives>> NewStreamCollectives(at::Device device);

  // Returns the texts of all ranks, indexed by rank, on every rank.
  absl::StatusOr<std::vector<std::string>> AllGather(const std::string& text);
  // Replaces `text` by rank 0's text on every rank.
  absl::Status Broadcast(std::string* text);
  // Waits until all ranks have made the call. `timeout` replaces the deadline of Join, for barriers
  // that other ranks may reach later.
  absl::Status Barrier(std::optional<absl::Duration> timeout = std::nullopt);

  // Returns true on every rank if `flag` is true on any rank.
  absl::StatusOr<bool> Any(bool flag);
  // Returns the same status on every rank: OK if all ranks' statuses are OK, otherwise the error of
  // the lowest rank with an error, with the rank's number in the message.
  absl::Status AllReduceStatus(const absl::Status& status);

  // Ends the whole job with `exit_code`, for an error of one rank that the other ranks cannot
  // detect. With one rank it ends only this process.
  [[noreturn]] void Abort(int exit_code);

  // Whether, according to the environment, an MPI launcher started this process.
  static bool LaunchedByMpi();
  // This process's rank and the number of ranks according to the environment; 0 and 1 without a
  // launcher.
  static int LaunchedRank();
  static int LaunchedSize();

 private:
  // Creates a communicator of all ranks after checking that each has a different GPU.
  absl::StatusOr<std::unique_ptr<NcclCommunicator>> InitNcclCommunicator(at::Device device,
                                                                         bool blocking);
  explicit ProcessGroup(absl::Duration timeout);
  // Whether this group, or a group from NewGroup, has lost ranks.
  bool lost() const;

  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  absl::Duration timeout_;
  ProcessGroup* job_ = nullptr;                  // creator of this group; null: the whole job
  bool group_lost_ = false;                      // a group from NewGroup has lost ranks
  bool own_mpi_ = false;                         // this object initialized MPI, and finalizes it
  std::unique_ptr<MpiCollectives> collectives_;  // null with one process
};

// Exit codes of the training programs.
enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,    // an error, which is printed on stderr in one sentence
  kExitBadUsage = 2,  // an invalid flag or configuration
  kExitRequeue = 75,  // stopped by a signal after a checkpoint; the same command resumes
};

// Returns the exit code for `status`. An error is logged as "error: message". With several ranks
// an error ends the whole job, because the other ranks cannot detect it.
int ExitCodeFor(const absl::Status& status, ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_PROCESS_GROUP_H_
