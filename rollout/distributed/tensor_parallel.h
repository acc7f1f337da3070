// Tensor-parallel engines: the model is sharded over the ranks of an MPI job, one GPU each. See
// model/weights/weights.h and tensor_parallel_driver.h.
#ifndef TRITONRL_ROLLOUT_DISTRIBUTED_TENSOR_PARALLEL_H_
#define TRITONRL_ROLLOUT_DISTRIBUTED_TENSOR_PARALLEL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/weights/weights.h"
#include "parallel/process_group.h"
#include "rollout/distributed/tensor_parallel_driver.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/model_runner.h"
#include "rollout/factory/make_engine.h"

namespace tritonrl {

// Deadline of what one rank does for another in a step.
inline constexpr absl::Duration kRankTimeout = absl::Minutes(2);

// Joins the ranks that a program with --tensor_parallel=`wanted` was started as. With 1 that is
// this process, and MPI is never touched. InvalidArgument: `wanted` is below 1, there is no
// launcher, or it started another number of ranks, which every rank is told (and has joined all the
// same, so that none ends before the first has said why).
absl::Status InitTensorParallel(int wanted, std::unique_ptr<ProcessGroup>* ranks,
                                absl::Duration timeout = kRankTimeout);

// The part of the model that this rank holds.
WeightShard TensorParallelShard(const ProcessGroup& ranks);

// The same on every rank, which all pass what became of their own preparations: OK if all are
// ready, else the error of the lowest rank that has one. Waits half an hour for ranks that still
// read their weights.
absl::Status SyncStartup(const absl::Status& status, ProcessGroup* ranks);

// What connects this rank with the others, for a model on `device`. `timeout`: see RankChannels.
absl::StatusOr<RankChannels> MakeRankChannels(at::Device device, ProcessGroup* ranks,
                                              absl::Duration timeout = kRankTimeout);

// On rank 0 a runner of all ranks' steps, which all pass their own. Afterwards `ranks` belongs to
// it as long as it lives. Each other rank runs the steps meanwhile, and gets null when it has
// ended; if it loses rank 0, it ends the job with a message. InvalidArgument on all ranks: runners
// of other sizes than rank 0's.
absl::StatusOr<std::unique_ptr<ModelRunner>> MakeTensorParallelRunner(
    std::unique_ptr<ModelRunner> own, RankChannels links, ProcessGroup* ranks);

// An engine on such a runner; all ranks pass their shard of the weights and the same configuration.
// Null on ranks but the first. With one rank: MakeBatchedEngine. Errors, on all ranks: those of
// MakeModelRunner and InitNcclCollectives too.
absl::StatusOr<std::unique_ptr<Engine>> MakeTensorParallelEngine(std::shared_ptr<Weights> weights,
                                                                 const EngineConfig& config,
                                                                 EngineContext context,
                                                                 ProcessGroup* ranks);

// The end of a program of several ranks by an error, which the first rank prints as
// "PROGRAM: message". Returns `code`; with code 1 the first rank ends the whole job instead, as
// others may wait for it. `ranks` may be null.
int ExitWithError(const absl::Status& status, const char* program, int code, ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_DISTRIBUTED_TENSOR_PARALLEL_H_
