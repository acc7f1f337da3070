// Compares ZeRO-2 with ZeRO-1 on one, two and three ranks; see the test program.
#include "trainer/learner/gradient_accumulator.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "gtest/gtest.h"
#include "parallel/testing/mpi_launch.h"

namespace tritonrl {
namespace {

class GradientPassesTest : public testing::TestWithParam<int> {};

TEST_P(GradientPassesTest, BothStagesOfZeroLearnTheSame) {
  const auto program = Runfile("trainer/testing/gradient_accumulator_test_program");
  ASSERT_TRUE(program.ok()) << program.status();
  const auto folder = MakeTempDirectory("gradient_passes");
  ASSERT_TRUE(folder.ok());
  RunCommandOptions options;
  options.timeout = absl::Seconds(50);
  options.env = MpiTestEnvironment();
  std::vector<std::string> argv = {*program, *folder, "cpu"};
  if (GetParam() > 1) argv = MpirunCommand(GetParam(), argv);
  const auto result = RunCommand(argv, options);
  RemoveTree(*folder).IgnoreError();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 0) << result->err;
  for (int rank = 0; rank < GetParam(); ++rank) {
    const std::string line = absl::StrCat("rank ", rank, " of ", GetParam(), " ok");
    EXPECT_NE(result->out.find(line), std::string::npos) << result->out << result->err;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, GradientPassesTest, testing::Values(1, 2, 3),
                         [](const auto& info) { return absl::StrCat(info.param); });

}  // namespace
}  // namespace tritonrl
