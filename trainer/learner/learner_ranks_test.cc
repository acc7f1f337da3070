// The learner on several MPI ranks has the same losses as one process on the same global batches.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "gtest/gtest.h"
#include "parallel/testing/mpi_launch.h"

namespace tritonrl {
namespace {

std::vector<double> Numbers(const std::vector<std::string>& argv) {
  RunCommandOptions options;
  options.timeout = absl::Seconds(50);
  options.env = MpiTestEnvironment();
  const auto result = RunCommand(argv, options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 0) << result->err;
  std::vector<double> numbers;
  for (const auto& word : absl::StrSplit(result->out, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    double value = NAN;
    EXPECT_TRUE(absl::SimpleAtod(word, &value)) << word;
    numbers.push_back(value);
  }
  return numbers;
}

// Runs the test program on one or several ranks and parses the numbers that it prints.
class LearnerRanks : public testing::Test {
 protected:
  void SetUp() override {
    const auto program = Runfile("trainer/testing/learner_test_program");
    ASSERT_TRUE(program.ok()) << program.status();
    const auto folder = MakeTempDirectory("ranks");
    ASSERT_TRUE(folder.ok());
    program_ = *program;
    folder_ = *folder;
  }
  void TearDown() override {
    if (!folder_.empty()) RemoveTree(folder_).IgnoreError();
  }

  std::vector<double> Learn(int ranks, const std::vector<std::string>& words) const {
    std::vector<std::string> argv = {program_, folder_};
    argv.insert(argv.end(), words.begin(), words.end());
    return Numbers(ranks == 1 ? argv : MpirunCommand(ranks, argv));
  }

  std::string program_, folder_;
};

TEST_F(LearnerRanks, TwoRanksLearnTheSame) {
  const std::vector<double> one = Learn(1, {});
  const std::vector<double> two = Learn(2, {});
  const std::vector<double> zero2 = Learn(2, {"zero2"});
  ASSERT_EQ(one.size(), 27);
  ASSERT_EQ(two.size(), 27);
  ASSERT_EQ(zero2.size(), 27);
  for (size_t i = 0; i < one.size(); ++i) {
    // The clip fraction changes by whole tokens; all other numbers change only by rounding.
    EXPECT_NEAR(two[i], one[i], 1e-4 * std::abs(one[i]) + 1e-7) << "number " << i;
    EXPECT_NEAR(zero2[i], one[i], 1e-4 * std::abs(one[i]) + 1e-7) << "number " << i;
  }
  EXPECT_GT(one[2], 0.01);         // some tokens were clipped
  EXPECT_EQ(one[6] + one[7], 14);  // all counted samples
  EXPECT_GE(one[7], 3);            // at least the group with equal rewards has no gradient
}

// With one group of three samples, from the second step on one of four ranks has no sample although
// it had one in the first step.
TEST_F(LearnerRanks, ARankWithoutSamplesAddsNothing) {
  const std::vector<double> one = Learn(1, {"shrink"});
  for (const std::string stage : {"zero1", "zero2"}) {
    const std::vector<double> four = Learn(4, {"shrink", stage});
    ASSERT_EQ(one.size(), 27);
    ASSERT_EQ(four.size(), 27);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_NEAR(four[i], one[i], 1e-4 * std::abs(one[i]) + 1e-7) << stage << " number " << i;
    }
  }
  EXPECT_EQ(one[9 + 6] + one[9 + 7], 3);  // samples of the second step
  EXPECT_EQ(one[9 + 8], 2);               // with an update in each epoch
}

}  // namespace
}  // namespace tritonrl
