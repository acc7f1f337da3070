// Runs process_group_test_program under mpirun: collectives, groups of ranks, and the end of a job
// in which a rank dies or hangs.
#include "parallel/process_group.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "gtest/gtest.h"
#include "parallel/testing/mpi_launch.h"

namespace tritonrl {
namespace {

CommandResult Launch(const std::string& what, int ranks = 2) {
  const auto program = Runfile("parallel/testing/process_group_test_program");
  EXPECT_TRUE(program.ok()) << program.status();
  RunCommandOptions options;
  options.timeout = absl::Seconds(100);
  options.env = MpiTestEnvironment();
  const auto result = RunCommand(MpirunCommand(ranks, {*program, what}), options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->timed_out) << result->err;
  return *result;
}

TEST(ProcessGroup, IsAWorldOfOneWithoutALauncher) {
  auto ranks = ProcessGroup::Join(absl::Seconds(1));
  ASSERT_TRUE(ranks.ok());
  EXPECT_EQ((*ranks)->size(), 1);
  double values[2] = {1, 2};
  ASSERT_TRUE((*ranks)->AllReduce(values).ok());
  EXPECT_EQ(values[1], 2);
  const auto texts = (*ranks)->AllGather("a");
  ASSERT_TRUE(texts.ok());
  EXPECT_EQ(*texts, std::vector<std::string>{"a"});
}

TEST(ProcessGroup, SumsAndExchangesOverTwoRanks) {
  const CommandResult result = Launch("collectives");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("rank 0 of 2 ok"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("rank 1 of 2 ok"), std::string::npos) << result.out;
}

// Covers exact sums, buckets with uneven and empty shards, and several types.
TEST(ProcessGroup, SumsAndExchangesOverSixRanks) {
  const CommandResult result = Launch("shards", 6);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_NE(result.out.find(absl::StrCat("rank ", rank, " of 6 ok")), std::string::npos)
        << result.out;
  }
}

TEST(ProcessGroup, AGroupOfRanksWorksBesideTheOthers) {
  const CommandResult result = Launch("groups", 3);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* rank : {"rank 0 of 3 ok", "rank 1 of 3 ok", "rank 2 of 3 ok"}) {
    EXPECT_NE(result.out.find(rank), std::string::npos) << result.out;
  }
}

TEST(ProcessGroup, ADeadRankEndsTheJob) {
  const CommandResult result = Launch("die");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(result.out.find("survived"), std::string::npos) << result.out;
}

TEST(ProcessGroup, AHangingRankEndsTheJobWithAMessage) {
  const CommandResult result = Launch("hang");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("did not answer in a reduce-scatter"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace tritonrl
