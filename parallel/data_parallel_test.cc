// Runs data_parallel_test_program under mpirun: sums, exchanges, and what happens when a rank dies
// or hangs.
#include "parallel/data_parallel.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"
#include "parallel/mpi_launch.h"

namespace tritonrl {
namespace {

// With `ranks_per_node`, in two levels.
CommandResult Launch(const std::string& what, int ranks = 2, int ranks_per_node = 0) {
  const auto program = Runfile("parallel/data_parallel_test_program");
  EXPECT_TRUE(program.ok()) << program.status();
  RunCommandOptions options;
  options.timeout = absl::Seconds(100);
  options.env = MpiTestEnvironment();
  std::vector<std::string> argv = {*program, what};
  if (ranks_per_node > 0) argv.push_back(absl::StrCat(ranks_per_node));
  const auto result = RunCommand(MpirunCommand(ranks, argv), options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->timed_out) << result->err;
  return *result;
}

TEST(DataParallel, IsAWorldOfOneWithoutALauncher) {
  auto ranks = DataParallel::Join(absl::Seconds(1));
  ASSERT_TRUE(ranks.ok());
  EXPECT_EQ((*ranks)->size(), 1);
  double values[2] = {1, 2};
  ASSERT_TRUE((*ranks)->Sum(values).ok());
  EXPECT_EQ(values[1], 2);
  const auto texts = (*ranks)->AllGather("a");
  ASSERT_TRUE(texts.ok());
  EXPECT_EQ(*texts, std::vector<std::string>{"a"});
}

TEST(DataParallel, SumsAndExchangesOverTwoRanks) {
  const CommandResult result = Launch("collectives");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("rank 0 of 2 ok"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("rank 1 of 2 ok"), std::string::npos) << result.out;
}

TEST(DataParallel, AGroupOfRanksWorksBesideTheOthers) {
  const CommandResult result = Launch("groups", 3);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* rank : {"rank 0 of 3 ok", "rank 1 of 3 ok", "rank 2 of 3 ok"}) {
    EXPECT_NE(result.out.find(rank), std::string::npos) << result.out;
  }
}

TEST(DataParallel, ADeadRankEndsTheJob) {
  const CommandResult result = Launch("die");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(result.out.find("survived"), std::string::npos) << result.out;
}

TEST(DataParallel, AHangingRankEndsTheJobWithAMessage) {
  const CommandResult result = Launch("hang");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("did not answer in the sum of gradients"), std::string::npos)
      << result.err;
}

// Sums that are exact, buckets with uneven and empty pieces, several types; in two levels and
// plain.
TEST(DataParallelTwoLevels, GiveWhatOneGives) {
  const CommandResult result = Launch("shards", 6, 2);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_NE(result.out.find(absl::StrCat("rank ", rank, " of 6 ok")), std::string::npos)
        << result.out;
  }
}

TEST(DataParallelTwoLevels, NeedAGrid) {
  const CommandResult uneven = Launch("shards", 3, 2);
  EXPECT_NE(uneven.exit_code, 0);
  EXPECT_NE(uneven.err.find("the first node has 2 ranks and node number 2 has 1"),
            std::string::npos)
      << uneven.err;
}

TEST(DataParallelTwoLevels, ADeadRankEndsTheJob) {
  const CommandResult result = Launch("die", 4, 2);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(result.out.find("survived"), std::string::npos) << result.out;
}

// One rank of each node hangs, and then all of one node.
TEST(DataParallelTwoLevels, RanksThatHangEndTheJobWithAMessageFromEitherLevel) {
  for (const auto& [what, where] :
       {std::pair("hang", "inside a node"), std::pair("node_hang", "between nodes")}) {
    const CommandResult result = Launch(what, 4, 2);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_EQ(result.out.find("survived"), std::string::npos) << result.out;
    EXPECT_NE(result.err.find(absl::StrCat("did not answer in the sum of gradients ", where)),
              std::string::npos)
        << result.err;
  }
}

}  // namespace
}  // namespace tritonrl
