#include "rollout/tensor_parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "parallel/exit_code.h"
#include "rollout/leading_runner.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kLoading = absl::Minutes(30);

// Sizes that must be the same on every rank, and the pages of the rank that has fewest.
absl::StatusOr<int> CompareSizes(const ModelRunner& own, DataParallel* ranks) {
  const std::string mine = absl::StrCat(
      "max_length ", own.max_length(), ", max_running ", own.max_running(), ", max_step_tokens ",
      own.max_step_tokens(), ", ", own.max_in_flight(), " steps in flight, vocabulary ",
      own.vocab_size(), ", pages of ", own.page_size());
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

absl::Status JoinTensorParallel(int wanted, std::unique_ptr<DataParallel>* ranks,
                                absl::Duration timeout) {
  if (wanted < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensor_parallel is ", wanted, ", must be at least 1"));
  }
  if (wanted == 1) {
    *ranks = DataParallel::Alone();
    return absl::OkStatus();
  }
  const std::string wants = absl::StrCat("--tensor_parallel=", wanted, " takes ", wanted, " ranks");
  const std::string command =
      absl::StrCat("start it as mpirun -n ", wanted, " PROGRAM --tensor_parallel=", wanted);
  if (!DataParallel::LaunchedByMpi()) {
    return absl::InvalidArgumentError(
        absl::StrCat(wants, ", and no launcher started this one; ", command));
  }
  ASSIGN_OR_RETURN(*ranks, DataParallel::Join(timeout));
  if ((*ranks)->size() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(wants, ", and ", (*ranks)->size(), " were started; ", command));
}

WeightShard ShardOf(const DataParallel& ranks) { return {ranks.rank(), ranks.size()}; }

absl::Status AgreeToStart(const absl::Status& status, DataParallel* ranks) {
  if (ranks->size() == 1) return status;
  RETURN_IF_ERROR(ranks->Barrier(kLoading));
  return ranks->Agree(status);
}

absl::StatusOr<std::unique_ptr<Engine>> MakeTensorParallelEngine(
    std::shared_ptr<Weights> weights, EngineOptions engine_options,
    const BatchedEngine::Options& options, DataParallel* ranks, absl::Duration timeout) {
  if (ranks->size() == 1) return MakeBatchedEngine(std::move(weights), engine_options, options);
  if (engine_options.cpu_threads == 0) {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    engine_options.cpu_threads = std::max(1, cores / ranks->local_size());
  }
  if (weights->device().is_cpu()) at::set_num_threads(engine_options.cpu_threads);
  RankLinks links = {.mail = ranks->MakeMail(), .timeout = timeout};
  absl::StatusOr<std::unique_ptr<RankSum>> sum = ranks->MakeRankSum(weights->device());
  RETURN_IF_ERROR(AgreeToStart(sum.status(), ranks));
  links.sum = *std::move(sum);
  engine_options.ranks = links.sum.get();
  absl::StatusOr<std::unique_ptr<ModelRunner>> runner =
      MakeModelRunner(std::move(weights), engine_options);
  RETURN_IF_ERROR(AgreeToStart(runner.status(), ranks));
  ASSIGN_OR_RETURN(const int pages, CompareSizes(**runner, ranks));
  if (ranks->is_root()) {
    auto leading = std::make_unique<LeadingRunner>(*std::move(runner), std::move(links), pages);
    return std::make_unique<BatchedEngine>(std::move(leading), options);
  }
  const absl::Status served = ServeSteps(*std::move(runner), links);
  if (!served.ok()) (void)ExitCodeFor(served, ranks);  // does not return
  return nullptr;
}

int EndWithError(const absl::Status& status, const char* program, int code, DataParallel* ranks) {
  if (DataParallel::LaunchedRank() != 0) return code;
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program, Message(status).c_str());
  std::fflush(stderr);
  if (code == kExitFailed && ranks != nullptr && ranks->size() > 1) ranks->Abort(code);
  return code;
}

}  // namespace tritonrl
