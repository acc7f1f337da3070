// The ranks of an MPI job that train one policy together, or generate for it. Every collective
// operation has a deadline: a rank that died or hangs ends the job with a message, never in
// silence.
#ifndef TRITONRL_PARALLEL_DATA_PARALLEL_H_
#define TRITONRL_PARALLEL_DATA_PARALLEL_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/bucket_exchange.h"
#include "parallel/node_grid.h"
#include "parallel/rank_mail.h"
#include "parallel/rank_sum.h"
#include "parallel/shard_plan.h"

namespace tritonrl {

class GpuCollectives;
class GpuCommunicator;
class MpiBuckets;

// How buckets are summed and gathered: in one operation of all ranks, or within each node and then
// between nodes (gathers the other way round), see two_level_pieces.h.
enum class BucketWay { kPlain, kTwoLevel };

// One thread at a time makes calls. All ranks must make the same calls in the same order. With one
// rank every operation returns at once and MPI is not touched.
class DataParallel {
 public:
  // Joins the job when an MPI launcher (mpirun, srun --mpi=pmix) started this process, else makes a
  // world of one. `timeout` is the deadline of each collective operation. Nodes are machines; only
  // programs that try several on one machine give `ranks_per_node`: so many ranks after each other
  // then count as a node, and each node has the machine's GPUs (for which NCCL must be told that
  // they are several hosts: NCCL_HOSTID, one for each node).
  static absl::StatusOr<std::unique_ptr<DataParallel>> Join(absl::Duration timeout,
                                                            int ranks_per_node = 0);
  // A world of this process alone, whoever started it.
  static std::unique_ptr<DataParallel> Alone();
  // Waits for the other ranks (up to the deadline) and leaves the job; of a group nobody waits.
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Rank among those on this node: which GPU to take.
  int local_rank() const { return local_rank_; }
  // Ranks on this machine, whatever counts as a node: they share its cores.
  int local_size() const { return local_size_; }
  bool is_root() const { return rank_ == 0; }
  // Nodes that these ranks are on.
  int nodes() const { return CountNodes(node_of_rank_); }
  // Their grid, if buckets can be summed in two levels; the errors are those of GridOf.
  absl::StatusOr<NodeGrid> Grid() const { return GridOf(node_of_rank_); }

  // A group of ranks with operations of its own, beside those of this job: called by all ranks
  // together, with the same numbers, each once. The n-th of them is the group's rank n; it gets the
  // group, which must end before this object, and the others get null. local_rank() stays that of
  // the job. InvalidArgument: a number that is no rank, or is there twice.
  absl::StatusOr<std::unique_ptr<DataParallel>> Group(const std::vector<int>& members);

  // Element-wise over all ranks, in place; the same bits on every rank.
  absl::Status Sum(std::span<double> values);
  absl::Status Max(std::span<double> values);
  // From now on tensors go from GPU to GPU (NCCL) where they lie on `device`; without it they go
  // through host memory, bucket by bucket. Nothing to do for a CPU or a single rank. Error: two
  // ranks with the same GPU, named.
  absl::Status JoinGpus(at::Device device);

  // How buckets are summed and gathered from now on; plain at first. Called by all ranks together,
  // after JoinGpus, while no bucket is under way. Two levels take communicators of their own (plain
  // gives those of NCCL back) and memory beside a bucket (TwoLevelPieces::StagedBytes). Both ways
  // give the same but for the order of additions. Error: two levels without a grid; a lost rank.
  absl::Status SetBucketWay(BucketWay way);
  BucketWay bucket_way() const { return bucket_way_; }

  // With several ranks: buckets of flat buffers, see BucketExchange.
  absl::Status ReduceBucket(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                            const at::Tensor& local, bool add = false);
  absl::Status AwaitReduce(const at::Tensor& full, int64_t bucket);
  absl::Status GatherBucket(const ShardPlan& plan, int64_t bucket, const at::Tensor& full);
  absl::Status BroadcastBucket(const at::Tensor& part, int root);
  absl::Status FinishBuckets(const at::Tensor& full, const char* what);
  // What all ranks keep, into `full` on every rank; both of one type, of any.
  absl::Status GatherShards(const ShardPlan& plan, const at::Tensor& local, const at::Tensor& full);

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
  absl::Status Agree(const absl::Status& status);

  // What tensor parallelism takes, with several ranks and for all of them together. Sums are
  // between the ranks' GPUs if `device` is one (the errors are those of JoinGpus), else through
  // host memory. Both end before this object.
  absl::StatusOr<std::unique_ptr<RankSum>> MakeRankSum(at::Device device);
  std::unique_ptr<RankMail> MakeMail();

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
  absl::StatusOr<std::unique_ptr<GpuCommunicator>> JoinNccl(at::Device device, bool blocking);
  // Those of the ranks that give the same color, in the order of their keys; null without a color.
  // Called by all ranks together.
  absl::StatusOr<std::unique_ptr<DataParallel>> Divide(std::optional<int> color, int key);
  absl::Status UseLevels(const NodeGrid& grid);
  BucketExchange* Exchange(const at::Tensor& full) const;
  // Remembers that a collective failed.
  absl::Status Noted(absl::Status status);

  struct Communicator;
  explicit DataParallel(absl::Duration timeout);

  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  int node_ = 0;                         // tells this rank's node from others'
  int named_ = 0;                        // the rank that errors of operations name
  std::vector<int> node_of_rank_ = {0};  // numbers that tell nodes apart
  BucketWay bucket_way_ = BucketWay::kPlain;
  bool lost_ = false;  // a collective failed: the others may never answer again
  absl::Duration timeout_;
  DataParallel* job_ = nullptr;           // whose group this is; null: the whole job
  std::unique_ptr<Communicator> comm_;    // null with one process
  std::unique_ptr<MpiBuckets> buckets_;   // through host memory; null with one process
  std::unique_ptr<GpuCollectives> gpus_;  // from GPU to GPU, once they have joined
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_DATA_PARALLEL_H_
