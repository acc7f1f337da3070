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

// Time limit for each answer of another rank in a step.
inline constexpr absl::Duration kRankTimeout = absl::Minutes(2);

// Joins the ranks of a program with --tensor_parallel=`wanted`. With 1 this process runs alone and
// does not use MPI. InvalidArgument: `wanted` is below 1, no launcher started this process, or the
// launcher started another number of ranks. In the last case, if `wanted` is above 1, all ranks
// have joined and get the error, so that no rank exits before rank 0 prints the reason.
absl::Status InitTensorParallel(int wanted, std::unique_ptr<ProcessGroup>* ranks,
                                absl::Duration timeout = kRankTimeout);

// The shard of the model that this rank holds.
WeightShard TensorParallelShard(const ProcessGroup& ranks);

// Each rank passes the status of its own start-up and gets the same result: OK if all ranks are
// ready, else the error of the lowest rank that has one. Waits up to half an hour for ranks that
// still load their weights.
absl::Status SyncStartup(const absl::Status& status, ProcessGroup* ranks);

// The channels between this rank and all other ranks, for a model on `device`. `timeout`: see
// RankChannels.
absl::StatusOr<RankChannels> MakeRankChannels(at::Device device, ProcessGroup* ranks,
                                              absl::Duration timeout = kRankTimeout);

// Each rank passes its own runner. Rank 0 gets a runner that executes each step on all ranks; no
// other code may use `ranks` while that runner exists. Every other rank executes the steps inside
// this call and gets null when rank 0's runner is destroyed; if rank 0 does not answer, it ends the
// job with a message. InvalidArgument on all ranks: a runner's sizes differ from rank 0's.
absl::StatusOr<std::unique_ptr<ModelRunner>> MakeTensorParallelRunner(
    std::unique_ptr<ModelRunner> own, RankChannels links, ProcessGroup* ranks);

// Makes an engine on such a runner. Each rank passes its shard of the weights, and all pass the
// same configuration. Null on all ranks except rank 0. With one rank: as MakeBatchedEngine. Other
// errors, on all ranks: those of MakeModelRunner and MakeRankChannels.
absl::StatusOr<std::unique_ptr<Engine>> MakeTensorParallelEngine(std::shared_ptr<Weights> weights,
                                                                 const EngineConfig& config,
                                                                 EngineContext context,
                                                                 ProcessGroup* ranks);

// Reports the error that ends a program of several ranks: rank 0 logs "PROGRAM: message", or
// prints it without time and level if it is a mistake in the call (code 2). Returns
// `code`; with code 1 rank 0 ends the whole job instead, because other ranks may wait for it.
// `ranks` may be null.
int ExitWithError(const absl::Status& status, const char* program, int code, ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_DISTRIBUTED_TENSOR_PARALLEL_H_
