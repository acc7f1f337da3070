// Runs tensor_parallel_test_program under mpirun: samples of a tensor-parallel model, and lost
// ranks. Also runs `generate` by its command line.
#include "rollout/distributed/tensor_parallel.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "gtest/gtest.h"
#include "parallel/testing/mpi_launch.h"

namespace tritonrl {
namespace {

CommandResult Launch(int ranks, const std::string& what) {
  const auto program = Runfile("rollout/distributed/testing/tensor_parallel_test_program");
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

TEST(TensorParallel, WithLittleMemoryAndDraftTokens) { ExpectAllRanksReach("memory", 2); }

TEST(TensorParallel, AnEngineMayRestLongerThanTheDeadline) { ExpectAllRanksReach("idle", 2); }

TEST(TensorParallel, OptionsThatDifferAreRefused) { ExpectAllRanksReach("sizes", 2); }

TEST(TensorParallel, AnErrorOfAnotherRankIsTheEngines) {
  ExpectLoss("fail", 2, "rank 1: no memory is left");
}

TEST(TensorParallel, AnErrorOfTheFirstRankEndsTheOthers) {
  ExpectLoss("first_fails", 2, "generation engine: no memory is left");
}

TEST(TensorParallel, ADeadRankEndsTheJob) {
  ExpectLoss("die", 2, "signal 9");  // from mpirun's message
  ExpectLoss("first_dies", 2, "signal 9");
}

TEST(TensorParallel, AHangingRankEndsTheJobWithAMessage) {
  ExpectLoss("hang", 4, "did not answer in an all-reduce within 2s");
  ExpectLoss("first_hangs", 2, "did not answer in an all-reduce within 2s");
}

TEST(TensorParallel, AFirstRankThatStandsStillEndsTheJobWithAMessage) {
  ExpectLoss("first_stops", 2, "rank 1: no message of rank 0 within 2s");
}

class Generate : public testing::Test {
 protected:
  static CommandResult Run(int ranks, const std::vector<std::string>& flags) {
    std::vector<std::string> argv = {Runfile("rollout/generate").value(),
                                     "--device=cpu",
                                     "--quiet",
                                     "--prompt=import triton",
                                     "--n=3",
                                     "--max_tokens=30"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    RunCommandOptions options;
    options.env = MpiTestEnvironment();
    const auto result = RunCommand(ranks == 0 ? argv : MpirunCommand(ranks, argv), options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  }

  // Number of lines on stderr that begin with `start`, as sentences or as errors in rank 0's log;
  // mpirun writes lines there too.
  static int LinesOf(const CommandResult& result, const std::string& start) {
    int count = 0;
    const std::string logged = " E [rank 0] " + start;
    for (const absl::string_view line : absl::StrSplit(result.err, '\n')) {
      count += absl::StartsWith(line, start) || absl::StrContains(line, logged);
    }
    return count;
  }

  const std::string model_ = "--model=" + Runfile("model/mini").value();
};

TEST_F(Generate, PrintsTheSamplesOfOneRankOnce) {
  const CommandResult one = Run(0, {model_, "--temperature=0"});
  const CommandResult two = Run(2, {model_, "--temperature=0", "--tensor_parallel=2"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_FALSE(one.out.empty());
  EXPECT_EQ(two.out, one.out);
}

TEST_F(Generate, MistakesAreToldOnceByAllRanksTogether) {
  const CommandResult many = Run(3, {model_, "--tensor_parallel=2"});
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_EQ(LinesOf(many, "generate: --tensor_parallel=2 takes 2 ranks, and 3 were started"), 1)
      << many.err;
  const CommandResult none = Run(2, {model_});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(LinesOf(none, "generate: 2 ranks were started, which would all do the same"), 1)
      << none.err;
  const CommandResult heads = Run(4, {model_, "--tensor_parallel=4"});
  EXPECT_EQ(heads.exit_code, 2);
  EXPECT_EQ(LinesOf(heads, "generate: "), 1) << heads.err;
  EXPECT_TRUE(absl::StrContains(heads.err, "num_key_value_heads is 2, which 4 does not divide"))
      << heads.err;
  const CommandResult folder = Run(2, {"--model=/no/such/folder", "--tensor_parallel=2"});
  EXPECT_EQ(folder.exit_code, 1);
  EXPECT_EQ(LinesOf(folder, "generate: rank 0: cannot read /no/such/folder"), 1) << folder.err;
}

TEST(TensorParallel, RanksAreAskedForInOneSentence) {
  std::unique_ptr<ProcessGroup> ranks;
  EXPECT_EQ(InitTensorParallel(0, &ranks),
            absl::InvalidArgumentError("--tensor_parallel is 0, must be at least 1"));
  EXPECT_EQ(InitTensorParallel(2, &ranks),
            absl::InvalidArgumentError(
                "--tensor_parallel=2 takes 2 ranks, and no launcher started this one; start it as "
                "mpirun --bind-to none -n 2 PROGRAM --tensor_parallel=2"));
  ASSERT_TRUE(InitTensorParallel(1, &ranks).ok());
  EXPECT_EQ(ranks->size(), 1);
}

}  // namespace
}  // namespace tritonrl
