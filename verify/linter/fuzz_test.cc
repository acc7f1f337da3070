// A short run of the fuzzer, the same each time.
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "verify/linter/mutate.h"

namespace tritonrl {
namespace {

TEST(FuzzTest, LinterAndSplitterSurviveMutatedInputs) {
  auto corpus = FuzzCorpus();
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  const Mutator mutator(*std::move(corpus), 7);
  auto report = Fuzz(mutator, 0, 2000, absl::Seconds(60), absl::InfiniteFuture());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->inputs, 2000u);
  EXPECT_GT(report->refused, 1000u);
  EXPECT_GT(report->accepted, 50u);  // mutations that leave a program alone, in comments and names
}

TEST(FuzzTest, AnInputIsAFunctionOfSeedAndNumber) {
  const std::vector<std::string> corpus{"def f(x):\n    return x + 1\n", "a = [1, 2, 3]\n"};
  const Mutator one(corpus, 1), same(corpus, 1), other(corpus, 2);
  int different = 0;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(one.Program(i), same.Program(i));
    EXPECT_EQ(one.Response(i), same.Response(i));
    different += one.Program(i) != other.Program(i);
  }
  EXPECT_GT(different, 25);
}

}  // namespace
}  // namespace tritonrl
