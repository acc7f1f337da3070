// Runs tensor_parallel_test_program under mpirun: samples of a model that is spread over ranks, and
// ranks that are lost.
#include "rollout/tensor_parallel.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"
#include "parallel/mpi_launch.h"

namespace tritonrl {
namespace {

CommandResult Launch(int ranks, const std::string& what) {
  const auto program = Runfile("rollout/tensor_parallel_test_program");
  EXPECT_TRUE(program.ok()) << program.status();
  RunCommandOptions options;
  options.timeout = absl::Seconds(90);
  options.env = MpiTestEnvironment();
  const auto result = RunCommand(MpirunCommand(ranks, {*program, what}), options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->timed_out) << result->out << result->err;
  return *result;
}

void ExpectAllRanksReach(const std::string& what, int ranks) {
  const CommandResult result = Launch(ranks, what);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(
        absl::StrContains(result.out, absl::StrCat("rank ", rank, " of ", ranks, ": ", what)))
        << result.out << result.err;
  }
}

void ExpectLoss(const std::string& what, int ranks, const std::string& told) {
  const CommandResult result = Launch(ranks, what);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_FALSE(absl::StrContains(result.out, "survived")) << result.out;
  EXPECT_TRUE(absl::StrContains(result.err, told)) << result.err;
}

TEST(TensorParallel, SamplesAreThoseOfOneRank) {
  ExpectAllRanksReach("same", 2);
  ExpectAllRanksReach("same", 4);
}

TEST(TensorParallel, WithLittleMemoryAndGuesses) { ExpectAllRanksReach("memory", 2); }

TEST(TensorParallel, AnEngineMayRestLongerThanTheDeadline) { ExpectAllRanksReach("idle", 2); }

TEST(TensorParallel, OptionsThatDifferAreRefused) { ExpectAllRanksReach("sizes", 2); }

TEST(TensorParallel, AnErrorOfAnotherRankIsTheEngines) {
  ExpectLoss("fail", 2, "generation engine: rank 1: no memory is left");
}

TEST(TensorParallel, AnErrorOfTheFirstRankEndsTheOthers) {
  ExpectLoss("first_fails", 2, "generation engine: no memory is left");
}

TEST(TensorParallel, ADeadRankEndsTheJob) {
  ExpectLoss("die", 2, "signal 9");  // in mpirun's words
  ExpectLoss("first_dies", 2, "signal 9");
}

TEST(TensorParallel, AHangingRankEndsTheJobWithAMessage) {
  ExpectLoss("hang", 3, "did not answer in a sum in the middle of a step within 2s");
  ExpectLoss("first_hangs", 2, "did not answer in a sum in the middle of a step within 2s");
}

TEST(TensorParallel, AFirstRankThatStandsStillEndsTheJobWithAMessage) {
  ExpectLoss("first_stops", 2, "within 2s");
}

TEST(TensorParallel, RanksAreAskedForInOneSentence) {
  EXPECT_EQ(JoinTensorParallel(0).status(),
            absl::InvalidArgumentError("--tensor_parallel is 0, must be at least 1"));
  EXPECT_EQ(JoinTensorParallel(2).status(),
            absl::InvalidArgumentError(
                "--tensor_parallel=2 takes 2 ranks, and no launcher started this one; start it as "
                "mpirun -n 2 PROGRAM --tensor_parallel=2"));
  const auto one = JoinTensorParallel(1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ((*one)->size(), 1);
}

}  // namespace
}  // namespace tritonrl
