// Runs weight_broadcast_test_program under mpirun: weight updates, and their failures.
#include <string>

#include "absl/strings/str_cat.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "gtest/gtest.h"
#include "parallel/testing/mpi_launch.h"

namespace tritonrl {
namespace {

CommandResult Launch(int ranks, const std::string& what) {
  const auto program = Runfile("rollout/distributed/testing/weight_broadcast_test_program");
  EXPECT_TRUE(program.ok()) << program.status();
  RunCommandOptions options;
  options.timeout = absl::Seconds(50);
  options.env = MpiTestEnvironment();
  const auto result = RunCommand(MpirunCommand(ranks, {*program, what}), options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->timed_out) << result->err;
  return *result;
}

void ExpectAllRanksReach(const std::string& what, int ranks) {
  const CommandResult result = Launch(ranks, what);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_NE(result.out.find(absl::StrCat("rank ", rank, " of ", ranks, ": ", what)),
              std::string::npos)
        << result.out << result.err;
  }
}

TEST(WeightBroadcast, EnginesGenerateTheSendersSamples) {
  ExpectAllRanksReach("update", 2);
  ExpectAllRanksReach("update", 3);
}

TEST(WeightBroadcast, OtherShapesAreRefused) { ExpectAllRanksReach("shapes", 3); }

TEST(WeightBroadcast, ARankThatIsNotReadyStopsAllBeforeAnythingIsWritten) {
  ExpectAllRanksReach("not_ready", 2);
  ExpectAllRanksReach("not_ready", 3);
}

TEST(WeightBroadcast, WeightsThatAreOthersAfterwardsAreFound) { ExpectAllRanksReach("damaged", 3); }

TEST(WeightBroadcast, ADeadSenderEndsTheJob) {
  const CommandResult result = Launch(2, "die");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(result.out.find("survived"), std::string::npos) << result.out;
}

TEST(WeightBroadcast, AHangingSenderEndsTheJobWithAMessage) {
  const CommandResult result = Launch(3, "hang");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("did not answer in a broadcast within 2s"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace tritonrl
