#include "rollout/distributed/tensor_parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "parallel/process_group.h"
#include "rollout/distributed/tensor_parallel_driver.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kLoading = absl::Minutes(30);

// Checks the sizes that must be equal on all ranks, and returns the smallest number of pages.
absl::StatusOr<int> CompareSizes(const ModelRunner& own, ProcessGroup* ranks) {
  const std::string mine = absl::StrCat(
      "max_length ", own.max_length(), ", max_num_seqs ", own.max_num_seqs(),
      ", max_num_batched_tokens ", own.max_num_batched_tokens(), ", ", own.max_in_flight(),
      " steps in flight, vocabulary ", own.vocab_size(), ", pages of ", own.page_size());
  ASSIGN_OR_RETURN(const std::vector<std::string> sizes, ranks->AllGather(mine));
  ASSIGN_OR_RETURN(const std::vector<std::string> pages,
                   ranks->AllGather(absl::StrCat(own.num_pages())));
  int fewest = own.num_pages();
  for (int rank = 0; rank < ranks->size(); ++rank) {
    if (sizes[rank] != sizes[0]) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " has (", sizes[rank],
                                                     "), rank 0 (", sizes[0],
                                                     "); start all ranks with the same flags"));
    }
    int theirs = 0;
    if (absl::SimpleAtoi(pages[rank], &theirs)) fewest = std::min(fewest, theirs);
  }
  return fewest;
}

}  // namespace

absl::Status InitTensorParallel(int wanted, std::unique_ptr<ProcessGroup>* ranks,
                                absl::Duration timeout) {
  if (wanted < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensor_parallel is ", wanted, ", must be at least 1"));
  }
  const int started = ProcessGroup::LaunchedSize();
  if (wanted == 1 && started > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(started,
                     " ranks were started, which would all do the same; start one, or "
                     "shard the model over them with --tensor_parallel=",
                     started));
  }
  if (wanted == 1) {
    *ranks = ProcessGroup::SingleProcess();
    return absl::OkStatus();
  }
  const std::string wants = absl::StrCat("--tensor_parallel=", wanted, " takes ", wanted, " ranks");
  const std::string command = absl::StrCat("start it as mpirun --bind-to none -n ", wanted,
                                           " PROGRAM --tensor_parallel=", wanted);
  if (!ProcessGroup::LaunchedByMpi()) {
    return absl::InvalidArgumentError(
        absl::StrCat(wants, ", and no launcher started this one; ", command));
  }
  ASSIGN_OR_RETURN(*ranks, ProcessGroup::Join(timeout));
  if ((*ranks)->size() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(wants, ", and ", (*ranks)->size(), " were started; ", command));
}

WeightShard TensorParallelShard(const ProcessGroup& ranks) { return {ranks.rank(), ranks.size()}; }

absl::Status SyncStartup(const absl::Status& status, ProcessGroup* ranks) {
  if (ranks->size() == 1) return status;
  RETURN_IF_ERROR(ranks->Barrier(kLoading));
  return ranks->AllReduceStatus(status);
}

absl::StatusOr<RankChannels> MakeRankChannels(at::Device device, ProcessGroup* ranks,
                                              absl::Duration timeout) {
  absl::StatusOr<std::unique_ptr<Collectives>> collectives = ranks->NewStreamCollectives(device);
  RETURN_IF_ERROR(SyncStartup(collectives.status(), ranks));
  return RankChannels{.collectives = *std::move(collectives), .timeout = timeout};
}

absl::StatusOr<std::unique_ptr<ModelRunner>> MakeTensorParallelRunner(
    std::unique_ptr<ModelRunner> own, RankChannels links, ProcessGroup* ranks) {
  const absl::StatusOr<int> pages = CompareSizes(*own, ranks);
  if (!pages.ok()) {
    own.reset();  // the runner uses the links
    return pages.status();
  }
  if (ranks->is_root()) {
    return std::make_unique<TensorParallelDriver>(std::move(own), std::move(links), *pages);
  }
  const absl::Status served = RunWorkerLoop(std::move(own), links);
  if (!served.ok()) (void)ExitCodeFor(served, ranks);  // does not return
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeTensorParallelEngine(std::shared_ptr<Weights> weights,
                                                                 const EngineConfig& config,
                                                                 EngineContext context,
                                                                 ProcessGroup* ranks) {
  if (ranks->size() == 1) return MakeBatchedEngine(std::move(weights), config, context);
  if (context.cpu_threads == 0) {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    context.cpu_threads = std::max(1, cores / ranks->local_size());
  }
  if (weights->device().is_cpu()) at::set_num_threads(context.cpu_threads);
  ASSIGN_OR_RETURN(RankChannels links, MakeRankChannels(weights->device(), ranks));
  context.ranks = links.collectives.get();
  absl::StatusOr<std::unique_ptr<ModelRunner>> own =
      MakeModelRunner(std::move(weights), config, context);
  RETURN_IF_ERROR(SyncStartup(own.status(), ranks));
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> all,
                   MakeTensorParallelRunner(*std::move(own), std::move(links), ranks));
  if (all == nullptr) return nullptr;
  return std::make_unique<BatchedEngine>(std::move(all), config);
}

int ExitWithError(const absl::Status& status, const char* program, int code, ProcessGroup* ranks) {
  if (ProcessGroup::LaunchedRank() != 0) {
    // A launcher ends all ranks as soon as one has failed, and rank 0 must print the reason before.
    // Ranks that have joined wait for each other anyway.
    if (ranks == nullptr) absl::SleepFor(absl::Seconds(1));
    return code;
  }
  std::fflush(stdout);
  const std::string text = absl::StrCat(program, ": ", Message(status));
  if (code == kExitFailed) {
    Log(LogLevel::kError, text);
  } else {  // a mistake in the call: one plain sentence
    std::fprintf(stderr, "%s\n", text.c_str());
    std::fflush(stderr);
  }
  if (code == kExitFailed && ranks != nullptr && ranks->size() > 1) ranks->Abort(code);
  return code;
}

}  // namespace tritonrl
