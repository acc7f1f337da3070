// Runs collectives_test_program under mpirun: all-reduce and broadcast inside a computation, and
// messages between ranks.
#include <string>

#include "absl/strings/match.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "gtest/gtest.h"
#include "parallel/testing/mpi_launch.h"

namespace tritonrl {
namespace {

TEST(Collectives, SumsBroadcastsAndMessagesOverTwoRanks) {
  const auto program = Runfile("parallel/testing/collectives_test_program");
  ASSERT_TRUE(program.ok()) << program.status();
  RunCommandOptions options;
  options.env = MpiTestEnvironment();
  const auto result = RunCommand(MpirunCommand(2, {*program, "sums"}), options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->timed_out) << result->err;
  EXPECT_EQ(result->exit_code, 0) << result->out << result->err;
  EXPECT_TRUE(absl::StrContains(result->out, "rank 0 of 2 ok")) << result->out;
  EXPECT_TRUE(absl::StrContains(result->out, "rank 1 of 2 ok")) << result->out;
}

}  // namespace
}  // namespace tritonrl
